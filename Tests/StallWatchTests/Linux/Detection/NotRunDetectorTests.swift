import Testing

@testable import StallWatch

/// A loop that was left at 10 s, asked once a second; times are in nanoseconds.
@Suite struct NotRunDetectorTests {
    private static let left: UInt64 = 10_000_000_000
    private var detector = NotRunDetector()
    private var load = LoopLoad(
        time: left, turns: 7, idle: 0, busy: 0, isOutside: true, lastEnd: left, runs: 1)
    private var actions: [PeriodAction] = []
    private var reports = 0

    init() { _ = detector.decide(nil, load) }

    /// Lets seconds pass, each with an answer to the last question.
    private mutating func pass(
        _ seconds: Int, timer: UInt64? = Self.left, mode: String? = nil, inOnePlace: Bool = true
    ) {
        for _ in 0..<seconds {
            load.time += NotRunDetector.interval
            let isAsked = detector.planQuestion(at: load.time)
            let answer = RunLoopModeReader.Answer(time: load.time, mode: mode, timerDate: timer, hasExpiredTimer: true)
            guard let action = detector.decide(isAsked ? answer : nil, load) else { continue }
            actions.append(action)
            if action == .sample, detector.isDue(inOnePlace: inOnePlace) { reports += 1 }
        }
    }

    @Test mutating func twoLooksInOnePlaceAreReportedOnce() {
        pass(1)
        #expect(actions == [.sample] && reports == 0)
        pass(1)
        #expect(reports == 1 && detector.since == Self.left)
        pass(10)
        #expect(reports == 1)
    }

    @Test mutating func anHourCostsAFixedNumberOfSamples() {
        pass(3_600)
        #expect(reports == 1 && actions.count { $0 == .sample } <= SampleSchedule.standard.budget + 2)
        pass(1, timer: nil)
        #expect(actions.last == .end(at: load.time - NotRunDetector.interval))
    }

    @Test mutating func aTimerThatIsNotDueIsSilent() {
        pass(20, timer: nil)
        #expect(actions.isEmpty)
    }

    @Test mutating func aTimerThatWasJustDueIsSilent() {
        for _ in 0..<20 { pass(1, timer: load.time + NotRunDetector.interval - NotRunDetector.limit + 1) }
        #expect(actions.isEmpty)
    }

    @Test mutating func aRunInAnotherModeIsSilent() {
        pass(20, mode: "tracking")
        #expect(actions.isEmpty)
    }

    @Test mutating func aThreadThatMovesOnIsSilent() {
        pass(20, inOnePlace: false)
        #expect(reports == 0)
        pass(1)
        #expect(reports == 1)
    }

    @Test mutating func aRunEndsTheReport() {
        pass(3)
        load.isOutside = false
        pass(1)
        #expect(actions.last == .end(at: load.time) && detector.nextPoll == nil)
    }

    @Test mutating func aRunBetweenTwoLooksEndsTheReport() {
        pass(3)
        load.lastEnd = load.time + 100_000_000
        pass(1)
        #expect(actions.last == .end(at: load.lastEnd))
    }

    @Test mutating func aTimerThatIsRemovedEndsTheReportAtTheLastLookThatFoundIt() {
        pass(3)
        pass(1, timer: nil)
        #expect(actions.last == .end(at: load.time - NotRunDetector.interval))
        pass(1)
        #expect(actions.last == .sample && reports == 1)
    }

    @Test mutating func oneSightingIsDropped() {
        pass(1)
        pass(1, timer: nil)
        #expect(actions == [.sample, .drop])
    }

    /// As at the end of a test.
    @Test func oneLookTellsSinceWhenATimerIsDue() {
        let now = Self.left + NotRunDetector.limit
        var answer = RunLoopModeReader.Answer(time: now, timerDate: Self.left - 1, hasExpiredTimer: true)
        #expect(NotRunDetector.dueSince(answer, load) == Self.left, "the loop may have run until then")
        answer.timerDate = Self.left + 1
        #expect(NotRunDetector.dueSince(answer, load) == nil, "it is not due for long enough")
        (answer.timerDate, answer.mode) = (Self.left, "tracking")
        #expect(NotRunDetector.dueSince(answer, load) == nil, "a run is on the stack")
        answer.mode = nil
        var running = load
        running.isOutside = false
        #expect(NotRunDetector.dueSince(answer, running) == nil)
    }

    /// A frame loop that loads a level.
    @Test mutating func aLoopThatWasRunTwiceGetsTenTimesItsLongestGap() {
        (load.runs, load.longestGap) = (2, 1_000_000_000)
        pass(9)
        #expect(actions.isEmpty)
        pass(3)
        #expect(reports == 1)
    }

    @Test mutating func timeInWhichTheProcessWasStoppedDoesNotCount() {
        load.time += NotRunDetector.interval
        _ = detector.planQuestion(at: load.time)
        let answer = RunLoopModeReader.Answer(time: load.time, timerDate: Self.left, hasExpiredTimer: true)
        let action = detector.decide(answer, load, countingFrom: load.time - NotRunDetector.limit + 1)
        #expect(action == nil)
    }

    /// A thousand loops are a thousand threads a second otherwise.
    @Test func `all loops are asked at the same moments`() throws {
        var moments: Set<UInt64> = []
        for left in stride(from: Self.left, to: Self.left + NotRunDetector.interval / 2, by: 1_234_567) {
            var (other, now) = (NotRunDetector(), load)
            (now.time, now.lastEnd) = (left, left)
            _ = other.decide(nil, now)
            let first = try #require(other.nextPoll)
            let isAsked = other.planQuestion(at: first)
            let second = try #require(other.nextPoll)
            #expect(isAsked && second - first == NotRunDetector.interval)
            #expect(first - left > NotRunDetector.interval / 2)
            moments.formUnion([first, second])
        }
        #expect(moments.count == 2)
    }

    @Test func aLoopIsLookedAtOnceASecondOnlyOutsideOfRuns() {
        #expect(detector.nextPoll == Self.left + NotRunDetector.interval)
        var (inside, running) = (NotRunDetector(), load)
        running.isOutside = false
        let action = inside.decide(nil, running)
        #expect(action == nil && inside.nextPoll == nil)
    }
}
