import StackCapture
import StallReports

/// Decides when a run loop has a timer that is due although no thread runs the loop (a pure value).
///
/// While the loop is outside of observed runs, ``RunLoopModeReader`` is asked once a second. Only answers count that find the
/// loop in no run at all and the first timer of its default mode due for ``limit``. Two of them in a row, between which the
/// loop did not run and its thread stayed in one place, make a report: a start-up that moves on is silent. A loop that was
/// run twice may also be between two runs, as that of a game is: it gets ten times its longest gap.
struct NotRunDetector {
    /// How long a timer is due without a run, in nanoseconds.
    static let limit: UInt64 = 500_000_000
    /// The usual time between two questions, in nanoseconds; at least half of it.
    static let interval: UInt64 = 1_000_000_000
    private static let gaps: UInt64 = 10
    private static let runs: UInt64 = 2

    /// When the loop was left, in monotonic nanoseconds, 0 for never; `nil` while it is in a run.
    private var left: UInt64?
    private var nextQuestion: UInt64 = 0
    /// The number of answers in a row that found a timer due, with the thread in one place.
    private(set) var sightings = 0
    private(set) var isReported = false
    /// The samples since the report, and when the next one is due, in monotonic nanoseconds.
    private var (samples, nextSample): (Int, UInt64) = (0, 0)
    /// Since when the loop is not run although a timer is due, in monotonic nanoseconds.
    private(set) var since: UInt64 = 0
    /// The last look that found the timer due, in monotonic nanoseconds: it may have been removed right after.
    private var lastDue: UInt64 = 0

    /// Returns what an answer to the last question, or a run of the loop, changes.
    ///
    /// Earlier time than `countingFrom` does not count. After a sample, ``isDue(inOnePlace:)`` decides.
    mutating func decide(
        _ answer: RunLoopModeReader.Answer?, _ load: LoopLoad, countingFrom: UInt64 = 0
    ) -> PeriodAction? {
        guard load.isOutside else { return stop(at: load.time) }
        if left != load.lastEnd {
            // Left a moment ago, or not looked at yet: what was reported ended when it ran in between.
            let action = left == nil ? nil : stop(at: load.lastEnd)
            (left, nextQuestion) = (load.lastEnd, Self.nextQuestion(after: load.time))
            return action
        }
        guard let answer, answer.time > load.lastEnd else { return nil }
        let due = Self.dueSince(answer, load, countingFrom: countingFrom)
        guard let begin = due else { return forget(at: lastDue) }
        lastDue = answer.time
        if sightings == 0 { since = begin }
        sightings += 1
        guard isReported else { return .sample }
        guard load.time >= nextSample else { return nil }
        samples += 1
        nextSample = SampleSchedule.standard.next(after: samples, age: load.time &- since).map { since &+ $0 } ?? .max
        return .sample
    }

    /// Returns since when a timer waits for a run of the loop, for ``limit`` or longer; `nil` if none does, if the loop is in a
    /// run, or is run again and again.
    static func dueSince(_ answer: RunLoopModeReader.Answer, _ load: LoopLoad, countingFrom: UInt64 = 0) -> UInt64? {
        guard load.isOutside, answer.mode == nil, answer.isTimerDue, let date = answer.timerDate else {
            return nil
        }
        let left = max(load.lastEnd, countingFrom)
        let begin = max(date, left)
        let patience = load.runs < runs ? limit : max(load.longestGap &* gaps, limit)
        let isLate = answer.time &- min(begin, answer.time) >= limit
        return isLate && answer.time &- min(left, answer.time) >= patience ? begin : nil
    }

    /// Takes over whether the thread was in one place at all looks; returns whether the loop is to be reported now.
    mutating func isDue(inOnePlace: Bool) -> Bool {
        guard !isReported else { return false }
        guard inOnePlace else {
            sightings = 1
            return false
        }
        isReported = sightings >= 2
        return isReported
    }

    /// Returns whether a question is due at a time, and plans the next one.
    mutating func planQuestion(at now: UInt64) -> Bool {
        guard left != nil, now >= nextQuestion else { return false }
        nextQuestion = Self.nextQuestion(after: now)
        return true
    }

    /// At the same moments for all loops, so that one pass of the watchdog, and one thread, asks them all.
    private static func nextQuestion(after now: UInt64) -> UInt64 {
        (now &+ interval &+ interval / 2) / interval * interval
    }

    /// When to poll at the latest, in monotonic nanoseconds; `nil` while the loop is in a run.
    var nextPoll: UInt64? { left == nil ? nil : nextQuestion }

    private mutating func stop(at end: UInt64) -> PeriodAction? {
        left = nil
        return forget(at: end)
    }

    private mutating func forget(at end: UInt64) -> PeriodAction? {
        defer { (sightings, isReported, samples, nextSample) = (0, false, 0, 0) }
        return isReported ? .end(at: end) : sightings > 0 ? .drop : nil
    }
}

struct NotRunSupervisor {
    private var detector = NotRunDetector()
    private var period = LoadPeriod()
    private let reader: RunLoopModeReader
    private var start: LoopLoad?

    init(_ reader: RunLoopModeReader) { self.reader = reader }

    mutating func poll(
        _ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext, countingFrom: UInt64
    ) -> UInt64? {
        var poll = poll
        if poll.target == .unknown, let thread = loop.source.knownThread { poll.target = .thread(thread) }
        // A loop that waits is in a run, which may have begun before it was observed.
        if poll.load.isOutside, loop.source.isWaitingUnobserved() { poll.load.isOutside = false }
        let answer = reader.takeAnswer()
        let action = detector.decide(answer, poll.load, countingFrom: countingFrom)
        if poll.load.isOutside, let answer, answer.mode == nil {
            loop.timerDelays.add(answer.dueTimers, at: answer.time)
        }
        if detector.planQuestion(at: poll.load.time) { reader.ask() }
        guard let action else { return detector.nextPoll }
        if action == .sample, start == nil {
            start = poll.load
            start?.time = min(detector.since, poll.load.time)
        }
        carryOut(action, poll, of: loop, context)
        if action != .sample {
            start = nil
        } else if detector.isDue(inOnePlace: period.isInOnePlace) {
            carryOut(.begin, poll, of: loop, context)
        } else if !detector.isReported, !period.isInOnePlace {
            // The next look is compared with this one.
            period = LoadPeriod()
            carryOut(.sample, poll, of: loop, context)
        }
        return detector.nextPoll
    }

    private mutating func carryOut(
        _ action: PeriodAction, _ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext
    ) {
        guard let start else { return }
        period.carryOut(action, of: loop, poll, from: start, context) { _ in
            var activity = StallReport.Activity(turnsPerSecond: 0)
            (activity.awaitedMode, activity.isTimerDue, activity.isNotRun) = ("kCFRunLoopDefaultMode", true, true)
            return activity
        } record: { time in
            StallRecord(.notRun, of: loop, poll, start: start, threshold: NotRunDetector.limit, at: time)
        }
    }

    func leave(_ context: WatchdogContext, at time: UInt64) { period.leave(context, since: start, at: time) }
}
