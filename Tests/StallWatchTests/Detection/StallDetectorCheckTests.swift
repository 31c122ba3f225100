import Testing

@testable import StallWatch

/// Checks of turns before the threshold and between samples, with a threshold of 1,000 and checks from 100 on.
@Suite struct StallDetectorCheckTests {
    private var detector = StallDetector(threshold: 1_000)
    private let turn = TurnSnapshot(began: 10_000, number: 1, nesting: 0)

    private mutating func decide(at time: UInt64, countingFrom: UInt64 = 0) -> StallDetector.Decision {
        detector.decide(turn, at: time, countingFrom: countingFrom, checkAge: 100)
    }

    private func isEarlyCheck(_ decision: StallDetector.Decision, start: UInt64 = 10_000) -> Bool {
        guard case .checkEarly(let turn)? = decision.actions.first, decision.actions.count == 1 else { return false }
        return turn.turnBegan == 10_000 && turn.start == start
    }

    @Test mutating func aTurnIsCheckedFromTheGivenAgeOnAtGrowingIntervals() {
        #expect(decide(at: 10_000) == StallDetector.Decision(actions: [], nextPoll: 10_100))
        var time: UInt64 = 10_100
        var ages: [UInt64] = []
        while time < 11_000 {
            let decision = decide(at: time)
            #expect(isEarlyCheck(decision))
            ages.append(time - 10_000)
            time = decision.nextPoll ?? .max
        }
        #expect(time == 11_000, "the threshold is met exactly")
        for (age, next) in zip(ages, ages.dropFirst()) { #expect(next == UInt64(Double(age) * 1.08)) }
        guard case .begin? = decide(at: 11_000).actions.first else {
            Issue.record("the turn is a stall")
            return
        }
    }

    @Test mutating func aPollBetweenChecksDoesNothing() {
        _ = decide(at: 10_100)
        #expect(decide(at: 10_104) == StallDetector.Decision(actions: [], nextPoll: 10_108))
    }

    @Test mutating func aTurnThatIsMeasuredAnewIsCheckedAnew() {
        _ = decide(at: 10_500)
        #expect(decide(at: 10_600, countingFrom: 10_590) == StallDetector.Decision(actions: [], nextPoll: 10_690))
        #expect(isEarlyCheck(decide(at: 10_690, countingFrom: 10_590), start: 10_590))
    }

    @Test mutating func aStallIsCheckedBetweenItsSamples() throws {
        var samples: [UInt64] = []
        var checks = 0
        var time: UInt64 = 11_000
        while let next = decide(at: time).nextPoll {
            let stall = try #require(detector.stall)
            if stall.samples > samples.count { samples.append(time - 10_000) } else { checks += 1 }
            time = next
        }
        #expect(samples.prefix(4) == [1_000, 1_500, 2_250, 3_375])
        #expect(samples.count + 1 == SampleSchedule.standard.budget, "the last one ends the loop above")
        #expect((80...100).contains(checks), "\(checks) checks")
        #expect(detector.stall?.samples == SampleSchedule.standard.budget)
    }

    @Test mutating func aBusyLoopIsPolledOncePerCheckAge() {
        let between = TurnSnapshot(began: nil, number: 5, nesting: 0)
        #expect(detector.decide(between, at: 500, checkAge: 100).nextPoll == 600)
        #expect(detector.decide(between, at: 600, checkAge: 100).nextPoll == nil)
        #expect(detector.decide(turn, at: 10_001, checkAge: 100).nextPoll == 10_100)
    }

    @Test mutating func aCheckAgeOverTheThresholdChangesNothingBeforeIt() {
        let decision = detector.decide(turn, at: 10_999, checkAge: 1_000)
        #expect(decision == StallDetector.Decision(actions: [], nextPoll: 11_000))
    }
}
