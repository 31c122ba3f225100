import StackCapture
import StallReports

/// Decides when the default mode of a run loop starves: a timer or the main queue waits for it for a time, while the loop
/// runs in another mode (a pure value).
///
/// The loop is *away* from its default mode if an observed run in another mode is innermost, or if it waits although no
/// observer saw a wait begin, inside a turn of the default mode or outside of all observed runs. While it is away,
/// ``RunLoopModeReader`` is asked at intervals what waits. Only its answers count; between two of them the default mode
/// was not served, as the same turn or the same number of its runs proves.
struct ModeStarvationDetector {
    /// The settings of a configuration.
    struct Rule: Sendable, Equatable {
        /// The time for which a timer or the main queue waits, in nanoseconds.
        var limit: UInt64
        var modalModes: Set<String> = []
    }

    /// The time for which a loop is away before the first question, and between two, in nanoseconds.
    static let interval: UInt64 = 200_000_000
    /// How far a timer's date, of the wall clock, may be from the monotonic clock, in nanoseconds.
    private static let dateError: UInt64 = 1_000_000
    /// A question that finds nothing is repeated after a part of the time away.
    private static let askingPart: UInt64 = 8
    /// The time after which no more questions are asked while nothing waits and the loop does not turn, in nanoseconds.
    private static let longestSearch: UInt64 = 60_000_000_000
    /// The time for which a loop that left all its runs may enter an unobserved one, in nanoseconds.
    private static let longestAbsence: UInt64 = 8_000_000_000

    /// A time in which the default mode is not served.
    struct Absence: Equatable {
        var defaultRuns: UInt64
        /// The turn of the default mode that goes on; `nil` in an observed run of another mode.
        var turn: UInt64?
        /// When it began at the latest, in monotonic nanoseconds.
        var since: UInt64
        /// Whether a callout of the default mode goes on.
        var isNested = false

        func isSame(as other: Absence) -> Bool { defaultRuns == other.defaultRuns && turn == other.turn }
    }

    let rule: Rule
    private(set) var absence: Absence?
    private(set) var isReported = false
    /// The last answer that found something to wait.
    private(set) var found: RunLoopModeReader.Answer?
    /// Since when a timer and the main queue wait.
    private var timerSince: UInt64?
    private var queueSince: UInt64?
    private var nextQuestion: UInt64 = 0
    private var nextSample: UInt64 = 0
    private var samples = 0
    private var hasSamples = false
    private var turns: UInt64 = 0

    init(rule: Rule) {
        self.rule = rule
    }

    /// Returns how the loop is away from its default mode, or `nil`; `isWaiting` tells whether it waits in any mode.
    func absence(_ turn: TurnSnapshot, _ load: LoopLoad, isWaiting: () -> Bool) -> Absence? {
        guard load.defaultRuns > 0 else { return nil }
        var new = Absence(defaultRuns: load.defaultRuns, turn: turn.number, since: load.lastEnd)
        if load.isOutside {
            return absence?.isSame(as: new) == true || isWaiting() ? new : nil
        }
        guard turn.mode == TurnRecorder.defaultMode else {
            new.turn = nil
            new.since = absence?.isSame(as: new) == true ? absence?.since ?? load.time : load.time
            new.isNested = turn.nesting > 0
            return new
        }
        guard let began = turn.began else { return nil }
        (new.since, new.isNested) = (began, true)
        return absence?.isSame(as: new) == true || turn.isWaitingUnobserved ? new : nil
    }

    /// When something began to wait, in monotonic nanoseconds; `nil` if nothing does.
    func start(countingFrom: UInt64) -> UInt64? {
        [timerSince, queueSince].compactMap { $0 }.min().map { max($0, countingFrom) }
    }

    /// Returns what an absence and an answer change.
    mutating func decide(
        _ new: Absence?, _ answer: RunLoopModeReader.Answer?, _ load: LoopLoad, countingFrom: UInt64 = 0
    ) -> PeriodAction? {
        guard let new, let old = absence, new.isSame(as: old) else { return begin(new, load) }
        if load.turns != turns, nextQuestion == .max { nextQuestion = load.time &+ Self.interval }
        turns = load.turns
        guard let answer, answer.time >= new.since else { return nil }
        guard let mode = answer.mode, !answer.isDefaultMode, !rule.modalModes.contains(mode) else {
            return begin(new, load)
        }
        // A date from before a callout may be that of the timer whose callout goes on: it says nothing.
        if answer.isTimerDue, let date = answer.timerDate, !new.isNested || date > new.since &+ Self.dateError {
            let since = max(date, new.since)
            timerSince = min(timerSince ?? since, since)
        } else {
            timerSince = nil
        }
        queueSince = answer.hasMainQueueWork ? queueSince ?? answer.time : nil
        guard let start = start(countingFrom: countingFrom) else {
            if answer.time &- new.since >= Self.longestSearch { nextQuestion = .max }
            return isReported || !hasSamples.take() ? nil : .drop
        }
        found = answer
        let age = answer.time &- min(start, answer.time)
        if !isReported {
            isReported = age >= rule.limit
            if !isReported, hasSamples { return nil }
            hasSamples = true
            return takeSample(isReported ? .begin : .sample, since: start, at: load.time)
        }
        return load.time >= nextSample ? takeSample(.sample, since: start, at: load.time) : nil
    }

    /// Begins another absence, or none.
    private mutating func begin(_ new: Absence?, _ load: LoopLoad) -> PeriodAction? {
        // Of a turn of the default mode that has ended since, the end is known.
        let end = absence?.turn != nil && load.lastEnd > absence?.since ?? 0 ? load.lastEnd : load.time
        let action: PeriodAction? = isReported ? .end(at: end) : hasSamples ? .drop : nil
        self = ModeStarvationDetector(rule: rule)
        absence = new
        turns = load.turns
        if let new { nextQuestion = max(new.since, load.time) &+ Self.interval }
        return action
    }

    private mutating func takeSample(_ action: PeriodAction, since start: UInt64, at now: UInt64) -> PeriodAction {
        samples += 1
        let next = SampleSchedule.standard.next(after: samples, age: now &- min(start, now))
        nextSample = next.map { start &+ $0 } ?? .max
        return action
    }

    /// Returns whether a question is due at `now`, and plans the next one.
    mutating func takesQuestion(at now: UInt64) -> Bool {
        guard let absence, now >= nextQuestion else { return false }
        let part = found == nil ? (now &- min(absence.since, now)) / Self.askingPart : 0
        nextQuestion = now &+ max(Self.interval, part)
        return true
    }

    /// When to poll at the latest, in monotonic nanoseconds; `nil` if the loop turns before anything can happen.
    func nextPoll(_ load: LoopLoad) -> UInt64? {
        if absence != nil { return nextQuestion == .max ? nil : nextQuestion }
        guard load.isOutside, load.defaultRuns > 0, load.lastEnd <= load.time else { return nil }
        let age = load.time - load.lastEnd
        return age < Self.longestAbsence ? load.time &+ max(age, Self.interval) : nil
    }
}

/// Reports the times in which the default mode of one loop starves.
struct ModeStarvationSupervisor {
    private var detector: ModeStarvationDetector
    private var period = LoadPeriod()
    private let reader: RunLoopModeReader
    private var start: LoopLoad?
    private var activity = StallReport.Activity(turnsPerSecond: 0)

    init(rule: ModeStarvationDetector.Rule, _ reader: RunLoopModeReader) {
        detector = ModeStarvationDetector(rule: rule)
        self.reader = reader
    }

    /// Reports a starvation that begins or ends; returns when to poll at the latest, if that matters.
    mutating func poll(
        _ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext, countingFrom: UInt64
    ) -> UInt64? {
        let load = poll.load
        let absence = detector.absence(poll.turn, load) { loop.source.isWaitingUnobserved() }
        let action = detector.decide(absence, reader.takeAnswer(), load, countingFrom: countingFrom)
        if detector.takesQuestion(at: load.time) { reader.ask() }
        if start == nil, let since = detector.start(countingFrom: countingFrom) {
            start = load
            start?.time = min(since, load.time)
        }
        if let action, let start {
            if let found = detector.found {
                activity = .init(
                    turnsPerSecond: load.pace(since: start), awaitedMode: "kCFRunLoopDefaultMode",
                    isTimerDue: found.isTimerDue, hasMainQueueWork: found.hasMainQueueWork)
            }
            period.carryOut(action, of: loop, poll, from: start, context) { [activity] _ in
                activity
            } record: { time in
                var record = StallRecord(
                    .modeStarvation, of: loop, poll, start: start, threshold: detector.rule.limit, at: time)
                record.loop.mode = detector.found?.mode
                // It may have begun right after the question before the one that found it.
                record.startUncertainty = min(
                    2 * ModeStarvationDetector.interval, start.time &- min(detector.absence?.since ?? 0, start.time))
                return record
            }
        }
        if !detector.isReported, detector.found == nil { start = nil }
        return detector.nextPoll(load)
    }

    /// Reports a starvation that still lasts as abandoned.
    func leave(_ context: WatchdogContext, at time: UInt64) { period.leave(context, since: start, at: time) }
}
