import Testing

@testable import StallWatch

/// Snapshots and times in, decisions out.
///
/// The threshold is 100.
@Suite struct StallDetectorTests {
    private var detector = StallDetector(threshold: 100)

    private func turn(_ number: UInt64, began: UInt64, nesting: Int = 0) -> TurnSnapshot {
        TurnSnapshot(began: began, number: number, nesting: nesting)
    }

    /// The loop waits, or is not running; its last turn was `number`.
    private func between(_ number: UInt64) -> TurnSnapshot {
        TurnSnapshot(began: nil, number: number, nesting: 0)
    }

    // MARK: The threshold

    @Test mutating func aTurnIsNoStallOneNanosecondBeforeTheThreshold() {
        let decision = detector.decide(turn(1, began: 1_000), at: 1_099)
        #expect(decision.actions.isEmpty)
        #expect(decision.nextPoll == 1_100)
        #expect(detector.stall == nil)
    }

    @Test mutating func aTurnIsAStallAtTheThreshold() {
        let decision = detector.decide(turn(7, began: 1_000, nesting: 2), at: 1_100)
        let stall = StallDetector.Stall(
            turnBegan: 1_000, start: 1_000, turn: 7, nesting: 2, samples: 1, nextSample: 1_150
        )
        #expect(decision.actions == [.begin(stall)])
        #expect(decision.nextPoll == 1_150)
        #expect(detector.stall == stall)
    }

    @Test mutating func aStallIsToldOnce() {
        #expect(detector.decide(turn(1, began: 1_000), at: 1_100).actions.count == 1)
        for time in stride(from: 1_101, to: 1_150, by: 7) as StrideTo<UInt64> {
            #expect(detector.decide(turn(1, began: 1_000), at: time).actions.isEmpty)
        }
    }

    /// The loop's clock may be read after the watchdog's.
    @Test mutating func aTurnThatBeginsAfterTheLooksOwnTimeIsYoung() {
        let decision = detector.decide(turn(1, began: 2_000), at: 1_999)
        #expect(decision == StallDetector.Decision(actions: [], nextPoll: 2_100))
    }

    // MARK: When to look again

    @Test mutating func aLoopThatHasNeverTurnedIsNotLookedAt() {
        #expect(detector.decide(between(0), at: 500) == StallDetector.Decision())
    }

    @Test mutating func aLoopThatHasTurnedSinceIsLookedAtOnceMoreAndThenNoMore() {
        #expect(detector.decide(between(3), at: 500).nextPoll == 600)
        #expect(detector.decide(between(4), at: 600).nextPoll == 700)
        #expect(detector.decide(between(4), at: 700).nextPoll == nil)
        #expect(detector.decide(between(4), at: 900).nextPoll == nil)
    }

    /// A loop that turns a little less often than once a threshold would otherwise wake the watchdog for every turn.
    @Test mutating func aWaitAfterATurnThatWasSeenIsLookedAtOnceMore() {
        #expect(detector.decide(turn(3, began: 500), at: 500).nextPoll == 600)
        #expect(detector.decide(between(3), at: 600).nextPoll == 700)
        #expect(detector.decide(between(3), at: 700).nextPoll == nil)
    }

    // MARK: The end

    @Test mutating func aStallEndsWhenTheLoopWaits() throws {
        _ = detector.decide(turn(1, began: 1_000), at: 1_100)
        let stall = try #require(detector.stall)
        #expect(
            detector.decide(between(1), at: 1_120) == StallDetector.Decision(actions: [.end(stall)], nextPoll: 1_220))
        #expect(detector.stall == nil)
    }

    @Test mutating func aStallEndsWhenAnotherTurnRuns() throws {
        _ = detector.decide(turn(1, began: 1_000), at: 1_100)
        let stall = try #require(detector.stall)
        let decision = detector.decide(turn(2, began: 1_110), at: 1_120)
        #expect(decision == StallDetector.Decision(actions: [.end(stall)], nextPoll: 1_210))
    }

    @Test mutating func oneStallMayFollowAnotherInOnePoll() throws {
        _ = detector.decide(turn(1, began: 1_000), at: 1_100)
        let first = try #require(detector.stall)
        let decision = detector.decide(turn(2, began: 1_140), at: 1_240)
        let second = try #require(detector.stall)
        #expect(second.turn == 2)
        #expect(second.start == 1_140)
        #expect(decision.actions == [.end(first), .begin(second)])
    }

    // MARK: Samples

    @Test mutating func samplesAreTakenWhenTheyAreDueAndNotBefore() throws {
        _ = detector.decide(turn(1, began: 1_000), at: 1_100)
        #expect(detector.decide(turn(1, began: 1_000), at: 1_149).actions.isEmpty)
        let decision = detector.decide(turn(1, began: 1_000), at: 1_150)
        let stall = try #require(detector.stall)
        #expect(stall.samples == 2)
        #expect(decision == StallDetector.Decision(actions: [.sample(stall)], nextPoll: 1_225))
    }

    @Test mutating func anEndlessStallIsSampledToTheBudgetAndThenLeftAlone() {
        detector = StallDetector(threshold: 100, schedule: SampleSchedule(budget: 4, growth: 2))
        var now: UInt64 = 1_100
        var actions: [UInt64] = []
        while let next = detector.decide(turn(1, began: 1_000), at: now).nextPoll {
            actions.append(now)
            now = next
        }
        #expect(actions + [now] == [1_100, 1_200, 1_400, 1_800])
        #expect(detector.stall?.samples == 4)
        #expect(detector.decide(turn(1, began: 1_000), at: 1_000_000).actions.isEmpty)
        #expect(detector.decide(between(1), at: 2_000_000).actions.count == 1, "its end is seen all the same")
    }

    /// After a stop of the whole process, many sampling times may have passed.
    ///
    /// One sample now says all there is to see.
    @Test mutating func aLateLookTakesOneSampleAndPutsOffTheNext() throws {
        let late = detector.decide(turn(1, began: 1_000), at: 9_000)
        #expect(late.actions.count == 1)
        #expect(late.nextPoll == 13_000)

        let later = detector.decide(turn(1, began: 1_000), at: 101_000)
        #expect(later.actions.count == 1)
        #expect(later.nextPoll == 151_000)
        #expect(detector.stall?.samples == 2)
    }

    // MARK: Nested runs that nobody observes

    private func waitingUnobserved(_ number: UInt64, began: UInt64) -> TurnSnapshot {
        TurnSnapshot(began: began, number: number, nesting: 0, isWaitingUnobserved: true)
    }

    @Test mutating func aTurnThatWaitsUnobservedIsNeverAStall() {
        var now: UInt64 = 1_000
        for _ in 0..<50 {
            let decision = detector.decide(waitingUnobserved(1, began: 1_000), at: now)
            #expect(decision == StallDetector.Decision(actions: [], nextPoll: now + 100))
            now += 100
        }
    }

    @Test mutating func aTurnIsMeasuredAnewFromWhereItWasSeenToWait() throws {
        _ = detector.decide(waitingUnobserved(1, began: 1_000), at: 1_070)
        #expect(detector.decide(turn(1, began: 1_000), at: 1_169).actions.isEmpty)
        _ = detector.decide(turn(1, began: 1_000), at: 1_170)
        let stall = try #require(detector.stall)
        #expect(stall.turnBegan == 1_000)
        #expect(stall.start == 1_070)
    }

    @Test mutating func theNextTurnIsMeasuredFromItsOwnBeginning() {
        _ = detector.decide(waitingUnobserved(1, began: 1_000), at: 1_070)
        #expect(detector.decide(turn(2, began: 1_075), at: 1_175).actions.count == 1)
        #expect(detector.stall?.start == 1_075)
    }

    /// The work was late; what the nested run then waits for are its own events.
    @Test mutating func aStallIsOverWhenItsTurnBeginsToWaitUnobserved() throws {
        _ = detector.decide(turn(1, began: 1_000), at: 1_100)
        let stall = try #require(detector.stall)
        let decision = detector.decide(waitingUnobserved(1, began: 1_000), at: 1_150)
        #expect(decision == StallDetector.Decision(actions: [.end(stall)], nextPoll: 1_250))
        #expect(detector.decide(turn(1, began: 1_000), at: 1_250).actions.count == 1, "and it may stall again")
        #expect(detector.stall?.start == 1_150)
    }
}
