import Testing

@testable import StallWatch

/// Loops in another mode than the default mode, asked every 200 ms; times are in nanoseconds.
@Suite struct ModeStarvationDetectorTests {
    private static let entered: UInt64 = 10_000_000_000
    private var detector = ModeStarvationDetector(rule: .init(limit: 1_000_000_000, modalModes: ["dialog"]))
    private var load = LoopLoad(time: entered, turns: 7, idle: 0, busy: 0, lastEnd: entered, defaultRuns: 3)
    private var turn = TurnSnapshot(began: entered, number: 7, nesting: 0, mode: 1, isWaitingUnobserved: true)
    private var actions: [PeriodAction] = []

    /// Lets intervals pass, each with an answer to the last question.
    private mutating func pass(
        _ intervals: Int, mode: String? = "tracking", timer: UInt64? = nil, expired: Bool = true, queue: Bool = false,
        isWaiting: Bool = true
    ) {
        for _ in 0..<intervals {
            load.time += ModeStarvationDetector.interval
            let answer = RunLoopModeReader.Answer(
                time: load.time, mode: mode, isDefaultMode: mode == "default", timerDate: timer,
                hasExpiredTimer: timer != nil && expired, hasMainQueueWork: queue)
            let absence = detector.absence(turn, load) { isWaiting }
            let isAsked = detector.absence != nil
            if let action = detector.decide(absence, isAsked ? answer : nil, load) { actions.append(action) }
            _ = detector.planQuestion(at: load.time)
        }
    }

    private var isReported: Bool { actions.contains(.begin) }

    @Test mutating func aTimerThatIsLateForTheLimitStarves() {
        pass(5)
        #expect(actions.isEmpty)
        pass(5, timer: Self.entered + 1_100_000_000)
        #expect(actions == [.sample])
        pass(1, timer: Self.entered + 1_100_000_000)
        #expect(actions == [.sample, .begin])
        #expect(detector.start(countingFrom: 0) == Self.entered + 1_100_000_000)
        load.lastEnd = load.time + 50_000_000
        turn.began = nil
        turn.isWaitingUnobserved = false
        pass(1)
        #expect(actions.last == .end(at: load.lastEnd))
    }

    @Test mutating func workOfTheMainQueueStarves() {
        pass(8, queue: true)
        #expect(isReported)
    }

    /// A timer that the mode serves, too, or none: its date moves on.
    @Test mutating func nothingThatWaitsIsNoStarvation() {
        pass(30)
        for _ in 0..<30 {
            pass(1, timer: load.time)
            pass(1)
        }
        #expect(!isReported)
    }

    /// The date of a timer in its callout has passed, and the kernel's timer has not expired.
    @Test mutating func theTimerInItsCalloutDoesNotWait() {
        pass(30, timer: Self.entered - 1_000_000, expired: false)
        #expect(actions.isEmpty)
    }

    /// Nor if another timer of the process has expired: whose it is cannot be known.
    @Test mutating func aTimerFromBeforeTheCalloutDoesNotCount() {
        pass(3, timer: Self.entered - 1_000_000, expired: false)
        pass(30, timer: Self.entered - 1_000_000)
        #expect(detector.start(countingFrom: 0) == nil)
        #expect(actions.isEmpty)
    }

    @Test(arguments: ["dialog", "default", nil]) mutating func modalAndDefaultModesAreLeftAlone(_ mode: String?) {
        pass(30, mode: mode, timer: Self.entered + 1, queue: true)
        #expect(actions.isEmpty)
    }

    /// Another turn of the default mode is in progress at each poll.
    @Test mutating func `a loop that comes back in between serves its default mode`() {
        for _ in 0..<30 {
            pass(3, queue: true)
            turn.number += 1
        }
        #expect(!isReported)
    }

    @Test mutating func anObservedModeStarvesTheDefaultModeToo() {
        (turn.mode, turn.isWaitingUnobserved) = (2, false)
        for _ in 0..<4 {
            pass(2, queue: true)
            (turn.number, load.turns) = (turn.number + 1, load.turns + 1)
        }
        #expect(isReported)
    }

    @Test mutating func aRunOutsideIsFoundByItsWait() {
        (load.isOutside, turn.began) = (true, nil)
        pass(1, isWaiting: false)
        #expect(detector.absence == nil)
        #expect(detector.nextPoll(load) != nil)
        pass(9, timer: Self.entered + 1)
        #expect(isReported)
    }

    @Test mutating func aLoopOutsideIsLookedAtTwice() {
        (load.isOutside, turn.began) = (true, nil)
        #expect(detector.nextPoll(load) == Self.entered + 1_000_000_000)
        load.time += 1_000_000_000
        #expect(detector.nextPoll(load) == Self.entered + 2_000_000_000)
        load.time += 1_000_000_000
        #expect(detector.nextPoll(load) == nil)
    }

    /// No observer has seen the run begin, in which it waits in its default mode.
    @Test mutating func `a loop that waits since before it was observed is not polled`() {
        (load.isOutside, load.lastEnd, turn.began, turn.number) = (true, 0, nil, 0)
        pass(30, mode: "default")
        #expect(detector.absence == nil)
        #expect(detector.nextPoll(load) == nil)
    }

    @Test mutating func `a loop that waits in its default mode is not polled`() {
        (turn.began, turn.isWaitingUnobserved) = (nil, false)
        pass(30, mode: "default")
        #expect(detector.nextPoll(load) == nil)
    }

    /// The run returns after the callout, and the thread does something else.
    @Test mutating func aStarvationEndsWithTheRunAroundIt() {
        pass(8, queue: true)
        load.lastEnd = load.time + 50_000_000
        (load.isOutside, turn.began, turn.isWaitingUnobserved) = (true, nil, false)
        pass(4, mode: nil, isWaiting: false)
        #expect(actions.last == .end(at: load.lastEnd))
    }

    /// The answer comes between two runs in the tracking mode.
    @Test mutating func oneAnswerOfAnotherModeEndsNoStarvation() {
        pass(8, queue: true)
        pass(1, mode: "default", queue: true)
        pass(2, queue: true)
        #expect(!actions.contains { $0 != .sample && $0 != .begin })
        pass(6, mode: nil, queue: true)
        #expect(actions.last.map { if case .end = $0 { true } else { false } } == true)
    }

    /// A thread of the monitor's is made for each question.
    @Test mutating func aModalModeIsAskedLessAndLessOften() {
        var questions = 0
        for _ in 0..<400 {
            load.time += ModeStarvationDetector.interval
            let answer = RunLoopModeReader.Answer(time: load.time, mode: "dialog", hasMainQueueWork: true)
            _ = detector.decide(detector.absence(turn, load) { true }, answer, load)
            questions += detector.planQuestion(at: load.time) ? 1 : 0
        }
        #expect(questions < 50)
        #expect(detector.nextPoll(load) == nil)
    }

    @Test mutating func aLoopThatRestsInAnotherModeIsLeftAlone() {
        pass(400)
        #expect(detector.nextPoll(load) == nil)
    }

    @Test mutating func `a loop that never ran its default mode is not asked`() {
        load.defaultRuns = 0
        pass(30, queue: true)
        #expect(actions.isEmpty)
        #expect(detector.nextPoll(load) == nil)
    }
}
