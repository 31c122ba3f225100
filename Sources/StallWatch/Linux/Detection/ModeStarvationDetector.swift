import StallReports

/// Decides when the default mode of a run loop starves: a timer or the main queue waits for it for a time, while the loop
/// runs in another mode (a pure value).
///
/// The loop is *away* from its default mode if an observed run in another mode is innermost, or if it waits although no
/// observer saw a wait begin, inside a turn of the default mode or outside of all observed runs. While it is away,
/// ``RunLoopModeReader`` is asked at intervals what waits, first when half of the limit is over. Only its answers count;
/// between two of them the default mode was not served, as the same turn or the same number of its runs proves.
///
/// A loop that waits in its default mode is never away, so nothing is polled for it.
struct ModeStarvationDetector {
    struct Rule: Sendable, Equatable {
        /// The time for which a timer or the main queue waits, in nanoseconds.
        var limit: UInt64
        var modalModes: Set<String> = []
    }

    /// The shortest time between two questions, and from the beginning to the first one, in nanoseconds.
    static let interval: UInt64 = 200_000_000
    /// How far a timer's date, of the wall clock, may be from the monotonic clock, in nanoseconds.
    private static let dateError: UInt64 = 1_000_000
    /// A question that finds nothing, or after the report, is repeated after a part of the time away.
    private static let askingPart: UInt64 = 8
    /// The longest time between two questions after the report, in nanoseconds.
    private static let longestInterval: UInt64 = 1_000_000_000
    /// The time after which no more questions are asked while nothing waits and the loop does not turn, in nanoseconds.
    private static let longestSearch: UInt64 = 60_000_000_000
    /// Absence is refused after so many answers in a row of no, the default or a modal mode: one may be between runs.
    private static let refusals = 2

    struct Absence: Equatable {
        var defaultRuns: UInt64
        /// The turn of the default mode that goes on; `nil` in an observed run of another mode.
        var turn: UInt64?
        /// When it began at the latest, in monotonic nanoseconds.
        var since: UInt64
        /// Whether a callout of the default mode goes on.
        var isNested = false
        var isOutside = false

        func isSame(as other: Absence) -> Bool {
            defaultRuns == other.defaultRuns && turn == other.turn && isOutside == other.isOutside
        }
    }

    let rule: Rule
    private(set) var absence: Absence?
    private(set) var isReported = false
    private(set) var found: RunLoopModeReader.Answer?
    private(set) var timerSince: UInt64?
    private(set) var queueSince: UInt64?
    /// The time by which the main queue's work may have come earlier, in nanoseconds.
    private(set) var queueUncertainty: UInt64 = 0
    /// The last answer, in monotonic nanoseconds, and the one that refused last.
    private(set) var lastAnswer: UInt64?
    private(set) var refusedAt: UInt64 = 0
    private(set) var refused = 0
    private(set) var searchSince: UInt64 = 0
    private(set) var nextQuestion: UInt64 = 0
    private(set) var nextSample: UInt64 = 0
    private(set) var samples = 0
    private(set) var hasSamples = false
    private(set) var turns: UInt64 = 0

    /// Returns how the loop is away from its default mode, or `nil`; `isWaiting` tells whether it waits in any mode.
    func absence(_ turn: TurnSnapshot, _ load: LoopLoad, isWaiting: () -> Bool) -> Absence? {
        guard load.defaultRuns > 0 else { return nil }
        var new = Absence(defaultRuns: load.defaultRuns, turn: turn.number, since: load.lastEnd)
        new.isOutside = load.isOutside
        if load.isOutside {
            // Before its first turn it may wait in a run that began before it was observed.
            guard load.lastEnd > 0 else { return nil }
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
        guard timerSince != nil || queueSince != nil else { return nil }
        return max(min(timerSince ?? .max, queueSince ?? .max), countingFrom)
    }

    mutating func decide(
        _ new: Absence?, _ answer: RunLoopModeReader.Answer?, _ load: LoopLoad, countingFrom: UInt64 = 0
    ) -> PeriodAction? {
        if new == nil, absence == nil { return nil }
        guard let new, let old = absence, new.isSame(as: old) else { return begin(new, load) }
        if load.turns != turns, nextQuestion == .max {
            (searchSince, nextQuestion) = (load.time, load.time &+ Self.interval)
        }
        turns = load.turns
        guard let answer, answer.time >= new.since else { return nil }
        guard let mode = answer.mode, !answer.isDefaultMode, !rule.modalModes.contains(mode) else {
            refused += 1
            return refused < Self.refusals ? nil : refuse(new, load)
        }
        refused = 0
        defer { lastAnswer = answer.time }
        // A date from before a callout may be that of the timer whose callout goes on: it says nothing.
        if answer.isTimerDue, let date = answer.timerDate, !new.isNested || date > new.since &+ Self.dateError {
            let since = max(date, new.since, refusedAt)
            timerSince = min(timerSince ?? since, since)
        } else {
            timerSince = nil
        }
        if !answer.hasMainQueueWork { queueSince = nil }
        if answer.hasMainQueueWork, queueSince == nil {
            queueSince = answer.time
            queueUncertainty = answer.time &- max(lastAnswer ?? 0, new.since, refusedAt)
        }
        guard let start = start(countingFrom: countingFrom) else {
            return isReported || !hasSamples.take() ? nil : .drop
        }
        found = answer
        let age = answer.time &- min(start, answer.time)
        if !isReported {
            isReported = age >= rule.limit
            if !isReported, hasSamples { return nil }
            hasSamples = true
            return countSample(isReported ? .begin : .sample, since: start, at: load.time)
        }
        return load.time >= nextSample ? countSample(.sample, since: start, at: load.time) : nil
    }

    private mutating func begin(_ new: Absence?, _ load: LoopLoad) -> PeriodAction? {
        // Of a turn of the default mode that has ended since, the end is known.
        let end = absence?.turn != nil && load.lastEnd > absence?.since ?? 0 ? load.lastEnd : load.time
        let action = stop(at: end)
        self = ModeStarvationDetector(rule: rule)
        absence = new
        turns = load.turns
        if let new {
            searchSince = new.since
            nextQuestion = max(new.since &+ max(rule.limit / 2, Self.interval), load.time)
        }
        return action
    }

    private mutating func refuse(_ new: Absence, _ load: LoopLoad) -> PeriodAction? {
        let action = stop(at: load.time)
        (absence, refusedAt) = (new, load.time)
        (found, timerSince, queueSince, lastAnswer) = (nil, nil, nil, nil)
        return action
    }

    private mutating func stop(at end: UInt64) -> PeriodAction? {
        defer { (isReported, hasSamples, samples) = (false, false, 0) }
        return isReported ? .end(at: end) : hasSamples ? .drop : nil
    }

    /// The time by which the starvation may have begun earlier, in nanoseconds: the date of a timer is exact.
    var startUncertainty: UInt64 {
        guard let queueSince else { return 0 }
        return timerSince.map { $0 < queueSince } ?? false ? 0 : queueUncertainty
    }

    private mutating func countSample(_ action: PeriodAction, since start: UInt64, at now: UInt64) -> PeriodAction {
        samples += 1
        let next = SampleSchedule.standard.next(after: samples, age: now &- min(start, now))
        nextSample = next.map { start &+ $0 } ?? .max
        return action
    }

    mutating func planQuestion(at now: UInt64) -> Bool {
        guard let absence, now >= nextQuestion else { return false }
        if found == nil, now &- min(searchSince, now) >= Self.longestSearch {
            nextQuestion = .max
            return false
        }
        let part = (now &- min(absence.since, now)) / Self.askingPart
        let later = isReported ? min(part, Self.longestInterval) : found == nil ? part : 0
        nextQuestion = now &+ max(Self.interval, later)
        return true
    }

    /// When to poll at the latest, in monotonic nanoseconds; `nil` if the loop turns before anything can happen.
    ///
    /// A loop outside of observed runs may enter an unobserved one: it is looked at after one and after two limits.
    func nextPoll(_ load: LoopLoad) -> UInt64? {
        if absence != nil { return nextQuestion == .max ? nil : nextQuestion }
        guard load.isOutside, load.defaultRuns > 0, load.lastEnd > 0 else { return nil }
        let first = load.lastEnd &+ rule.limit
        let second = first &+ rule.limit
        return second <= load.time ? nil : first <= load.time ? second : first
    }
}

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

    mutating func poll(
        _ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext, countingFrom: UInt64
    ) -> UInt64? {
        let load = poll.load
        let absence = detector.absence(poll.turn, load) { loop.source.isWaitingUnobserved() }
        let answer = reader.takeAnswer()
        let action = detector.decide(absence, answer, load, countingFrom: countingFrom)
        if let answer, detector.timerSince != nil { loop.timerDelays.add(answer.dueTimers, at: answer.time) }
        if detector.planQuestion(at: load.time) { reader.ask() }
        if start == nil, let since = detector.start(countingFrom: countingFrom) {
            start = load
            start?.time = min(since, load.time)
        }
        if let action, let start {
            if let found = detector.found {
                activity = .init(turnsPerSecond: load.pace(since: start))
                activity.awaitedMode = "kCFRunLoopDefaultMode"
                activity.isTimerDue = found.isTimerDue
                activity.hasMainQueueWork = found.hasMainQueueWork
            }
            period.carryOut(action, of: loop, poll, from: start, context) { [activity] _ in
                activity
            } record: { time in
                var record = StallRecord(
                    .modeStarvation, of: loop, poll, start: start, threshold: detector.rule.limit, at: time)
                record.loop.mode = detector.found?.mode
                record.startUncertainty = detector.startUncertainty
                return record
            }
        }
        if !detector.isReported, detector.found == nil { start = nil }
        return detector.nextPoll(load)
    }

    func leave(_ context: WatchdogContext, at time: UInt64) { period.leave(context, since: start, at: time) }
}
