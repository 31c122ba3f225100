import StallReports
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

@Suite struct LeadUpTests {
    private static let millisecond: UInt64 = 1_000_000
    /// When the stall began, in milliseconds.
    private static let start: UInt64 = 100_000

    private func loop(_ label: String, turns: [(began: UInt64, ended: UInt64?)]) -> LoopMonitor {
        let recorder = TurnRecorder(alarm: WatchdogAlarm())
        for turn in turns {
            recorder.beginTurn(at: turn.began * Self.millisecond)
            if let ended = turn.ended { recorder.endTurn(at: ended * Self.millisecond) }
        }
        return LoopMonitor(label: label, threshold: Self.millisecond, recorder: recorder, source: ThreadSource())
    }

    private func reader(_ own: LoopMonitor, _ others: [LoopMonitor], at now: UInt64) -> LeadUpReader {
        LeadUpReader(
            of: own, among: [own] + others, isAmong: true, start: Self.start * Self.millisecond,
            now: now * Self.millisecond)
    }

    @Test func theStalledLoopHasTheTurnsBeforeTheStall() throws {
        var earlier: [(began: UInt64, ended: UInt64?)] = []
        for turn: UInt64 in 0..<12 {
            let began = Self.start - 1_000 + turn * 80
            earlier.append((began, began + 40))
        }
        let own = loop("main", turns: earlier + [(Self.start, nil)])
        let report = StallReport.History(reader(own, [], at: Self.start + 250).leadUp, duration: 250 * Self.millisecond)
        let turns = try #require(report.loops.first?.turns)
        #expect(turns.count == 12)
        #expect(turns.allSatisfy { $0.durationMilliseconds == 40 && $0.isOngoing == nil })
        #expect(turns.first?.atMilliseconds == -1_000)
        #expect(turns.dropFirst().allSatisfy { $0.waitedMilliseconds == 40 })
    }

    @Test func turnsThatEndedBeforeTheWindowAreLeftOut() {
        let own = loop("main", turns: [(1, 2), (Self.start - 5_001, Self.start - 4_999), (Self.start, nil)])
        let kept = reader(own, [], at: Self.start + 250).leadUp.own.turns
        #expect(kept.map(\.began) == [(Self.start - 5_001) * Self.millisecond])
    }

    @Test func `other loops are shown before and during the stall`() throws {
        let own = loop("main", turns: [(Self.start, nil)])
        let other = loop("db", turns: [(Self.start - 10, Self.start - 5), (Self.start + 50, nil)])
        var reader = reader(own, [other], at: Self.start + 250)
        let first = StallReport.History(reader.leadUp, duration: 250 * Self.millisecond).loops
        #expect(first.map(\.label) == ["main", "db"])
        #expect(first.last?.turns.map(\.durationMilliseconds) == [5, 200])
        #expect(first.last?.turns.last?.isOngoing == true)
        other.recorder.endTurn(at: (Self.start + 300) * Self.millisecond)
        reader.update(now: (Self.start + 400) * Self.millisecond) { _ in true }
        let last = StallReport.History(reader.leadUp, duration: 400 * Self.millisecond).loops.last
        #expect(last?.turns.map(\.durationMilliseconds) == [5, 250])
        #expect(last?.turns.last?.isOngoing == nil)
    }

    /// As those of the main thread, or of a group of event loops.
    @Test func `loops with one label keep their own turns`() {
        let own = loop("main", turns: [(Self.start, nil)])
        let other = loop("main", turns: [(Self.start - 10, Self.start - 5)])
        var reader = reader(own, [other], at: Self.start + 250)
        let before = reader.leadUp.others
        reader.update(now: (Self.start + 400) * Self.millisecond) { _ in true }
        #expect(reader.leadUp.others == before)
    }

    @Test func earlierReadingsKeepWhatALoopHasReplaced() {
        let own = loop("main", turns: [(Self.start, nil)])
        let other = loop("db", turns: [(Self.start - 10, Self.start - 5)])
        var reader = reader(own, [other], at: Self.start + 250)
        for number in 0..<UInt64(TurnHistory.capacity) {
            other.recorder.beginTurn(at: (Self.start + 300 + number * 3) * Self.millisecond)
            other.recorder.endTurn(at: (Self.start + 302 + number * 3) * Self.millisecond)
        }
        reader.update(now: (Self.start + 2_000) * Self.millisecond) { _ in true }
        #expect(reader.leadUp.others.first?.turns.count == TurnHistory.capacity + 1)
        let shown = StallReport.History(reader.leadUp, duration: 2_000 * Self.millisecond).loops.last
        #expect(shown?.turns.count == StallReport.History.maximumOtherTurns)
        #expect(shown?.omitsOlderTurns == true)
    }

    @Test func aLoopThatIsNoLongerWatchedKeepsItsTurns() {
        let own = loop("main", turns: [(Self.start, nil)])
        let other = loop("db", turns: [(Self.start - 10, Self.start - 5)])
        var reader = reader(own, [other], at: Self.start + 250)
        reader.update(now: (Self.start + 400) * Self.millisecond) { $0 === own }
        #expect(reader.leadUp.others.map(\.turns.count) == [1])
    }

    @Test func loopsOverTheLimitAreCounted() {
        let own = loop("main", turns: [(Self.start, nil)])
        let others = (0..<20).map { loop("loop-\($0)", turns: []) }
        let leadUp = reader(own, others, at: Self.start + 250).leadUp
        #expect(leadUp.others.count == LeadUpReader.maximumOthers)
        #expect(StallReport.History(leadUp, duration: 1).omittedLoops == 4)
    }

    /// All of them may stall at once.
    @Test func `of many loops only those that are shown are looked at`() {
        let loops = (0..<20).map { loop("loop-\($0)", turns: []) }
        let context = WatchedWorld(at: Self.start * Self.millisecond).context(StubCapturer())
        context.loops = loops
        for own in [loops[0], loops[19]] {
            var reader = LeadUpReader(of: own, context, start: Self.start * Self.millisecond)
            #expect(reader.leadUp.others.count == LeadUpReader.maximumOthers && reader.leadUp.omittedLoops == 3)
            var asked = 0
            reader.update(now: Self.start * Self.millisecond) { loop in
                asked += 1
                return context.isWatched(loop)
            }
            #expect(asked == LeadUpReader.maximumOthers)
        }
        context.loops.removeFirst()
        #expect(!context.isWatched(loops[0]) && context.isWatched(loops[19]))
    }
}

@Suite struct StallRecordSamplesTests {
    private func sample(
        at age: UInt64, _ addresses: [UInt64], method: StallReport.CaptureMethod = .ptrace, slices: UInt64 = 0,
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

    @Test func `the same stack in another context is another sample`() {
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

    @Test func `a thread that has not run is still in the same place`() {
        var samples = [sample(at: 30, [1, 2], method: .read, slices: 7)]
        #expect(samples.isCurrent(slices: 7))
        #expect(!samples.isCurrent(slices: 8))
        samples.extendLast(to: 90, at: 90, used: 5)
        samples.add(sample(at: 100, [3, 2], method: .read, slices: 8))
        #expect(samples.weights(duration: 120) == [95, 25])
        #expect(samples[0].timesSeen == 2)
    }

    @Test func `only a read of a blocked thread proves that it has not run`() {
        #expect(![sample(at: 30, [1], method: .ptrace, slices: 7)].isCurrent(slices: 7))
        #expect(![sample(at: 30, [1], method: .read, slices: 0)].isCurrent(slices: 0), "slices are not counted")
        #expect(![sample(at: 30, [1], method: .read, slices: 7, isValid: false)].isCurrent(slices: 7))
        #expect(![StallRecord.Sample]().isCurrent(slices: 7))
    }

    /// Two phases of a computation whose innermost frames always differ.
    @Test func `over the limit, the most similar neighbors are merged`() throws {
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

    @Test func `a stack is not merged with a missing one before all others`() {
        var samples: [StallRecord.Sample] = []
        samples.append(StallRecord.Sample(age: 5, isValid: true, stack: .failure(CaptureFailure.timedOut)))
        for age in 1...100 as ClosedRange<UInt64> { samples.add(sample(at: age * 10, [1_000 + age, 4])) }
        #expect(samples.count == StallRecord.maximumSamples)
        #expect((try? samples[0].stack.get()) == nil)
    }
}

extension StallRecord.Sample {
    fileprivate mutating func setContext(_ context: CapturedContext) {
        guard case .success(var captured) = stack else { return }
        captured.context = context
        stack = .success(captured)
    }
}
