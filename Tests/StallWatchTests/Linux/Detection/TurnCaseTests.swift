import TestSupport
import Testing

@testable import StackCapture
@testable import StallWatch

/// How the samples of a turn are kept and merged.
@Suite struct StallRecordSamplesTests {
    private func sample(
        at age: UInt64, _ addresses: [UInt64], method: CapturedStack.Method = .ptrace, slices: UInt64 = 0,
        isValid: Bool = true
    ) -> StallRecord.Sample {
        StallRecord.Sample(
            age: age, isValid: isValid,
            stack: .success(.stub(addresses, method: method, state: method == .read ? .blocked : .running)),
            slices: slices
        )
    }

    private func addresses(_ sample: StallRecord.Sample) throws -> [UInt64] {
        try sample.stack.get().frames.map(\.address)
    }

    @Test func theSameStackInAnotherContextIsAnotherSample() {
        var first = sample(at: 30, [1, 2])
        var second = sample(at: 40, [1, 2])
        first.setContext(CapturedContext(task: .init(id: 1)))
        second.setContext(CapturedContext(task: .init(id: 2)))
        var samples: [StallRecord.Sample] = []
        for sample in [first, first, second] { samples.add(sample) }
        #expect(samples.map(\.timesSeen) == [2, 1])
    }

    @Test func neighborsWithTheSameStackAreOneSample() {
        var samples: [StallRecord.Sample] = []
        for age in [30, 40, 50] as [UInt64] { samples.add(sample(at: age, [1, 2])) }
        samples.add(sample(at: 60, [3, 2]))
        samples.add(sample(at: 70, [1, 2]))
        #expect(samples.map(\.age) == [30, 60, 70])
        #expect(samples.map(\.timesSeen) == [3, 1, 1])
        #expect(samples.weights(duration: 100) == [55, 10, 35])
    }

    @Test func anInvalidSampleCountsForNothing() {
        var samples: [StallRecord.Sample] = []
        samples.add(sample(at: 30, [1, 2]))
        samples.add(sample(at: 60, [1, 2], isValid: false))
        #expect(samples.weights(duration: 100) == [100, 0])
        #expect(Array(samples.dropFirst()).weights(duration: 100) == [100], "there is no other")
    }

    @Test func aThreadThatHasNotRunIsStillInTheSamePlace() {
        var samples = [sample(at: 30, [1, 2], method: .read, slices: 7)]
        #expect(samples.isCurrent(slices: 7))
        #expect(!samples.isCurrent(slices: 8))
        samples.extendLast(to: 90, used: 5)
        samples.add(sample(at: 100, [3, 2], method: .read, slices: 8))
        #expect(samples.weights(duration: 120) == [95, 25])
        #expect(samples[0].timesSeen == 2)
    }

    @Test func onlyAReadOfABlockedThreadProvesThatItHasNotRun() {
        #expect(![sample(at: 30, [1], method: .ptrace, slices: 7)].isCurrent(slices: 7))
        #expect(![sample(at: 30, [1], method: .read, slices: 0)].isCurrent(slices: 0), "slices are not counted")
        #expect(![sample(at: 30, [1], method: .read, slices: 7, isValid: false)].isCurrent(slices: 7))
        #expect(![StallRecord.Sample]().isCurrent(slices: 7))
    }

    /// Two phases of a computation whose innermost frames always differ.
    @Test func overTheLimitTheMostSimilarNeighborsAreMerged() throws {
        var samples: [StallRecord.Sample] = []
        for age in 1...100 as ClosedRange<UInt64> {
            samples.add(sample(at: age * 10, [1_000 + age, age < 70 ? 2 : 3, 4]))
        }
        #expect(samples.count == StallRecord.maximumSamples)
        #expect(samples.reduce(0) { $0 + $1.timesSeen } == 100)
        #expect(samples.map(\.age) == samples.map(\.age).sorted())
        let weights = samples.weights(duration: 1_000)
        var first: UInt64 = 0
        for (sample, weight) in zip(samples, weights) where try addresses(sample)[1] == 2 { first += weight }
        #expect(first == 695, "the boundary between the phases stays exact")
    }

    @Test func aStackIsNotMergedWithAMissingOneBeforeAllOthers() {
        var samples: [StallRecord.Sample] = []
        samples.append(StallRecord.Sample(age: 5, isValid: true, stack: .failure(CaptureFailure.timedOut)))
        for age in 1...100 as ClosedRange<UInt64> { samples.add(sample(at: age * 10, [1_000 + age, 4])) }
        #expect(samples.count == StallRecord.maximumSamples)
        #expect((try? samples[0].stack.get()) == nil)
    }
}

extension StallRecord.Sample {
    /// Sets the context of a captured stack.
    fileprivate mutating func setContext(_ context: CapturedContext) {
        guard case .success(var captured) = stack else { return }
        captured.context = context
        stack = .success(captured)
    }
}
