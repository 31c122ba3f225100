import Testing

@testable import StallWatch

/// The decisions on given snapshots and times; the threshold is 100.
@Suite struct StallDetectorTests {
    private var detector = StallDetector(threshold: 100)

    private func turn(_ number: UInt64, began: UInt64, nesting: Int = 0) -> TurnSnapshot {
        TurnSnapshot(began: began, number: number, nesting: nesting)
    }

    /// Returns the state of a loop that waits or does not run, after its turn `number`.
    private func between(_ number: UInt64) -> TurnSnapshot {
        TurnSnapshot(began: nil, number: number, nesting: 0)
    }

    // MARK: The threshold

    @Test mutating func `a turn is no stall one nanosecond before the threshold`() {
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

    /// The loop may read its clock after the watchdog has read its own.
    @Test mutating func `a turn that begins after the poll's time is no stall`() {
        let decision = detector.decide(turn(1, began: 2_000), at: 1_999)
        #expect(decision == StallDetector.Decision(actions: [], nextPoll: 2_100))
    }

    // MARK: When to poll again

    @Test mutating func aLoopWithoutTurnsIsNotPolledAgain() {
        #expect(detector.decide(between(0), at: 500) == StallDetector.Decision())
    }

    @Test mutating func aLoopThatHasTurnedIsPolledOnceMore() {
        #expect(detector.decide(between(3), at: 500).nextPoll == 600)
        #expect(detector.decide(between(4), at: 600).nextPoll == 700)
        #expect(detector.decide(between(4), at: 700).nextPoll == nil)
        #expect(detector.decide(between(4), at: 900).nextPoll == nil)
    }

    /// Otherwise a loop that turns slightly less than once per threshold would wake the watchdog for every turn.
    @Test mutating func `a loop that waits after a seen turn is polled once more`() {
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

    @Test mutating func `samples are taken when they are due and not before`() throws {
        _ = detector.decide(turn(1, began: 1_000), at: 1_100)
        #expect(detector.decide(turn(1, began: 1_000), at: 1_149).actions.isEmpty)
        let decision = detector.decide(turn(1, began: 1_000), at: 1_150)
        let stall = try #require(detector.stall)
        #expect(stall.samples == 2)
        #expect(decision == StallDetector.Decision(actions: [.sample(stall)], nextPoll: 1_225))
    }

    @Test mutating func `an endless stall is not sampled beyond the budget`() {
        detector = StallDetector(threshold: 100, schedule: SampleSchedule(budget: 4, growth: 2))
        var now: UInt64 = 1_100
        var actions: [UInt64] = []
        while now != .max, let next = detector.decide(turn(1, began: 1_000), at: now).nextPoll {
            actions.append(now)
            advance(&now, to: next)
        }
        #expect(actions + [now] == [1_100, 1_200, 1_400, 1_800])
        #expect(detector.stall?.samples == 4)
        #expect(detector.decide(turn(1, began: 1_000), at: 1_000_000).actions.isEmpty)
        #expect(detector.decide(between(1), at: 2_000_000).actions.count == 1, "the end is still seen")
    }

    /// After a stop of the whole process, several samples may be overdue; one sample shows all that can be seen now.
    @Test mutating func aLatePollTakesOneSampleAndDelaysTheNext() throws {
        let late = detector.decide(turn(1, began: 1_000), at: 9_000)
        #expect(late.actions.count == 1)
        #expect(late.nextPoll == 13_000)

        let later = detector.decide(turn(1, began: 1_000), at: 101_000)
        #expect(later.actions.count == 1)
        #expect(later.nextPoll == 151_000)
        #expect(detector.stall?.samples == 2)
    }

    // MARK: Nested runs without observers

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

    @Test mutating func aTurnIsMeasuredFromItsLastUnobservedWait() throws {
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

    /// The turn's own work was late; the nested run then waits for its own events.
    @Test mutating func `a stall ends when its turn begins to wait unobserved`() throws {
        _ = detector.decide(turn(1, began: 1_000), at: 1_100)
        let stall = try #require(detector.stall)
        let decision = detector.decide(waitingUnobserved(1, began: 1_000), at: 1_150)
        #expect(decision == StallDetector.Decision(actions: [.end(stall)], nextPoll: 1_250))
        #expect(detector.decide(turn(1, began: 1_000), at: 1_250).actions.count == 1, "the turn may stall again")
        #expect(detector.stall?.start == 1_150)
    }
}

@Suite struct SampleScheduleTests {
    /// The ages at which a stall is sampled if every poll is on time.
    private func ages(_ schedule: SampleSchedule, threshold: UInt64) -> [UInt64] {
        var ages = [threshold]
        while let last = ages.last, let next = schedule.next(after: ages.count, age: last) { ages.append(next) }
        return ages
    }

    @Test func `intervals grow to nine minutes at the default threshold`() throws {
        let milliseconds = ages(.standard, threshold: 250_000_000).map { Int((Double($0) / 1e6).rounded()) }
        #expect(milliseconds.prefix(7) == [250, 375, 563, 844, 1_266, 1_898, 2_848])
        #expect((540_000...560_000).contains(try #require(milliseconds.last)))
    }

    @Test(arguments: [1, 2, 20])
    func theBudgetIsKept(budget: Int) {
        #expect(ages(SampleSchedule(budget: budget, growth: 1.5), threshold: 100).count == budget)
    }

    @Test func ageHasALimitAndDoesNotOverflow() {
        let schedule = SampleSchedule(budget: 20, growth: 1.5)
        #expect(schedule.next(after: 1, age: .max) == SampleSchedule.maximumAge)
        #expect(schedule.next(after: 1, age: SampleSchedule.maximumAge) == SampleSchedule.maximumAge)
    }
}

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

    @Test mutating func `a turn is checked from the given age on at growing intervals`() {
        #expect(decide(at: 10_000) == StallDetector.Decision(actions: [], nextPoll: 10_100))
        var time: UInt64 = 10_100
        var ages: [UInt64] = []
        while time < 11_000 {
            let decision = decide(at: time)
            #expect(isEarlyCheck(decision))
            ages.append(time - 10_000)
            advance(&time, to: decision.nextPoll ?? .max)
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
        while time != .max, let next = decide(at: time).nextPoll {
            let stall = try #require(detector.stall)
            if stall.samples > samples.count { samples.append(time - 10_000) } else { checks += 1 }
            advance(&time, to: next)
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

    @Test mutating func `a check age over the threshold changes nothing before it`() {
        let decision = detector.decide(turn, at: 10_999, checkAge: 1_000)
        #expect(decision == StallDetector.Decision(actions: [], nextPoll: 11_000))
    }
}

/// Time that does not count as part of a turn, with a threshold of 100.
@Suite struct StallDetectorSuppressionTests {
    private var detector = StallDetector(threshold: 100)
    private let turn = TurnSnapshot(began: 1_000, number: 1, nesting: 0)

    @Test mutating func aTurnCountsFromTheEndOfAPauseOn() {
        #expect(detector.decide(turn, at: 1_200, countingFrom: 1_150).nextPoll == 1_250)
        _ = detector.decide(turn, at: 1_250, countingFrom: 1_150)
        #expect(detector.stall?.start == 1_150)
        #expect(detector.stall?.turnBegan == 1_000)
    }

    @Test mutating func anEarlierPauseDoesNotMatter() {
        _ = detector.decide(turn, at: 1_100, countingFrom: 900)
        #expect(detector.stall?.start == 1_000)
    }

    @Test mutating func aDroppedStallIsMeasuredAnew() {
        _ = detector.decide(turn, at: 1_100)
        detector.measureAnew(from: 1_100)
        #expect(detector.stall == nil)
        #expect(detector.decide(turn, at: 1_199) == StallDetector.Decision(actions: [], nextPoll: 1_200))
        #expect(detector.decide(turn, at: 1_200).actions.count == 1)
    }

    @Test mutating func anAbandonedTurnIsNotPolledAgain() {
        _ = detector.decide(turn, at: 1_100)
        detector.abandon()
        #expect(detector.decide(turn, at: 5_000) == StallDetector.Decision())
        #expect(detector.decide(turn, at: 9_000) == StallDetector.Decision())
        let next = TurnSnapshot(began: 9_500, number: 2, nesting: 0)
        #expect(detector.decide(next, at: 9_600).actions.count == 1)
    }

    @Test mutating func `a changed threshold applies from the next poll on`() {
        #expect(detector.decide(turn, at: 1_050).nextPoll == 1_100)
        detector.threshold = 500
        #expect(detector.decide(turn, at: 1_100) == StallDetector.Decision(actions: [], nextPoll: 1_500))
        detector.threshold = 20
        #expect(detector.decide(turn, at: 1_101).actions.count == 1)
    }

    @Test mutating func aStallHasTheGapOfItsTurn() {
        let gap = TurnSnapshot(began: 1_000, number: 1, nesting: 0, isGap: true)
        _ = detector.decide(gap, at: 1_100)
        #expect(detector.stall?.isGap == true)
    }
}
