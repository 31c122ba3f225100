import StackCapture
import StallReports

/// Decides when a loop is saturated: it has not waited for 2 % of a long time, although its turns are short.
///
/// A pure value. If the loop was busy for 98 % of half of the threshold, that is a *candidate*, which is sampled. When
/// it is as old as the threshold, and the loop was busy for 98 % of it, the loop is saturated, until it was busy for
/// less than 98 % of the last quarter of the threshold. A turn that takes half of the threshold is a stall instead. If
/// hardly any of the time is in turns, the thread works between runs that find nothing to do, as a game does that draws a
/// thousand times a second.
struct SaturationDetector {
    /// The least time for which a saturated loop is busy, in nanoseconds.
    let threshold: UInt64
    /// The loop at earlier polls, oldest first: the last half of the threshold, and one poll before.
    private(set) var readings: [LoopLoad] = []
    private(set) var start: LoopLoad?
    /// When the loop became busy if its first turn came before the first reading; 0 once that reading is gone.
    private(set) var firstBegin: UInt64?
    private(set) var isReported = false
    private(set) var samples = 0
    private(set) var nextSample: UInt64 = 0

    private static let idleParts: UInt64 = 50
    /// The least part of the time in turns: small, because `RunLoop.run()` enters the loop again for each short turn.
    private static let turnParts: UInt64 = 8
    /// The largest number of readings in half a threshold.
    private static let resolution: UInt64 = 64
    /// The shortest time between two samples before the threshold, in nanoseconds.
    private static let shortestInterval: UInt64 = 10_000_000

    private var interval: UInt64 { max(threshold / 8, Self.shortestInterval) }

    /// When to poll at the latest, in monotonic nanoseconds; `nil` if there is not even a candidate.
    func nextPoll(at now: UInt64) -> UInt64? {
        start == nil ? nil : now &+ interval
    }

    /// Returns what the loop's state and its load at `load.time` change; earlier time than `countingFrom` does not count.
    mutating func decide(_ loop: TurnSnapshot, _ load: LoopLoad, countingFrom: UInt64 = 0) -> PeriodAction? {
        let now = load.time
        var load = load
        // The turn that goes on counts, too.
        load.busy &+= loop.began.map { now &- min($0, now) } ?? 0
        let isOneTurn = !isReported && loop.began.map { $0 < now && now - $0 >= threshold / 2 } ?? false
        let isCut = readings.last.map { $0.time < countingFrom } ?? false
        if load.turns == 0 || loop.isWaitingUnobserved || isOneTurn || isCut {
            readings = []
            if load.turns > 0 { firstBegin = 0 }
            return stop(at: now)
        }
        if firstBegin == nil {
            firstBegin = max(now &- min(load.busy, now), countingFrom)
        }
        defer { keep(load) }
        guard let start else { return begin(load) }
        if isReported {
            let recent = readings.last { now &- $0.time >= threshold / 4 } ?? start
            guard isBusy(from: recent, to: load) else { return stop(at: now &- load.idleTime(since: recent)) }
        } else {
            guard isBusy(from: start, to: load) else { return stop(at: now) }
            if now &- start.time >= threshold, load.turns > start.turns {
                isReported = true
                countSample(at: now, since: start.time)
                return .begin
            }
        }
        guard now >= nextSample else { return nil }
        countSample(at: now, since: start.time)
        return .sample
    }

    private mutating func begin(_ load: LoopLoad) -> PeriodAction? {
        guard let index = readings.lastIndex(where: { load.time &- $0.time >= threshold / 2 }),
            isBusy(from: readings[index], to: load)
        else { return nil }
        var first = readings[index]
        if let firstBegin, firstBegin > 0, isBusy(from: readings[0], to: first) {
            (first.time, first.turns) = (min(firstBegin, readings[0].time), 0)
        } else if index > 0 {
            // Between the two polls the loop was idle first, and then busy.
            let before = readings[index - 1]
            first.time = before.time &+ min(first.idleTime(since: before), first.time &- before.time)
        }
        start = first
        (isReported, samples) = (false, 0)
        countSample(at: load.time, since: first.time)
        return .sample
    }

    private mutating func stop(at end: UInt64) -> PeriodAction? {
        guard start != nil else { return nil }
        start = nil
        return isReported.take() ? .end(at: end) : .drop
    }

    private mutating func countSample(at now: UInt64, since start: UInt64) {
        samples += 1
        let later = SampleSchedule.standard.next(after: samples, age: now &- start).map { start &+ $0 }
        nextSample = isReported ? later ?? .max : now &+ interval
    }

    private mutating func keep(_ load: LoopLoad) {
        if let last = readings.last, load.time &- last.time < threshold / 2 / Self.resolution { return }
        // The newest of those that are older than half of the threshold stays, and the one before it.
        while readings.count > 2, load.time &- readings[2].time >= threshold / 2 {
            readings.removeFirst()
            firstBegin = 0
        }
        readings.append(load)
    }

    private func isBusy(from first: LoopLoad, to last: LoopLoad) -> Bool {
        let time = last.time &- first.time
        return last.idleTime(since: first) <= time / Self.idleParts
            && last.busyTime(since: first) >= time / Self.turnParts
    }
}

extension Bool {
    mutating func take() -> Bool {
        defer { self = false }
        return self
    }
}

extension LoopLoad {
    func idleTime(since start: LoopLoad) -> UInt64 { idle &- min(start.idle, idle) }

    func busyTime(since start: LoopLoad) -> UInt64 { busy &- min(start.busy, busy) }

    func pace(since start: LoopLoad) -> Double {
        (Double(turns &- start.turns) * 1e9 / Double(max(time &- start.time, 1))).toThousandths
    }
}

enum PeriodAction: Equatable {
    case sample
    case begin
    /// The reported period has ended, in monotonic nanoseconds.
    case end(at: UInt64)
    /// Forget the samples: nothing was reported.
    case drop
}

struct SaturationSupervisor {
    private var detector: SaturationDetector
    private var period = LoadPeriod()

    init(threshold: UInt64) {
        detector = SaturationDetector(threshold: threshold)
    }

    mutating func poll(
        _ poll: LoopPoll, of loop: LoopMonitor, _ context: WatchdogContext, countingFrom: UInt64
    ) -> UInt64? {
        let start = detector.start
        let action = detector.decide(poll.turn, poll.load, countingFrom: countingFrom)
        if let action, let start = start ?? detector.start {
            period.carryOut(action, of: loop, poll, from: start, context) { load in
                let idleShare = Double(load.idleTime(since: start)) / Double(max(load.time &- start.time, 1))
                return StallReport.Activity(
                    turnsPerSecond: load.pace(since: start), busyShare: max(1 - idleShare, 0).toThousandths)
            } record: {
                StallRecord(.saturation, of: loop, poll, start: start, threshold: detector.threshold, at: $0)
            }
        }
        return detector.nextPoll(at: poll.load.time)
    }

    func leave(_ context: WatchdogContext, at time: UInt64) { period.leave(context, since: detector.start, at: time) }
}

struct LoadPeriod {
    /// Until there is a record, their ages are moments.
    private var samples: [StallRecord.Sample] = []
    private var open: OpenRecord?

    /// Carries out an action of a detector at a poll, of a period that began at `start`.
    ///
    /// `activity` describes the period until a load, and `makeRecord` creates its record at a moment.
    mutating func carryOut(
        _ action: PeriodAction, of loop: LoopMonitor, _ poll: LoopPoll, from start: LoopLoad, samples count: Int = 1,
        _ context: WatchdogContext, activity: (LoopLoad) -> StallReport.Activity,
        record makeRecord: (UInt64) -> StallRecord
    ) {
        let (time, turns) = (poll.load.time, poll.load.turns &- start.turns)
        switch action {
        case .sample:
            for _ in 0..<count {
                sample(poll.target, context, at: context.now(), since: open == nil ? 0 : start.time)
            }
            guard open != nil else { return }
            open?.record.duration = time &- start.time
            submit(activity(poll.load), turns: turns, context, at: time)
        case .begin:
            sample(poll.target, context, at: context.now(), since: 0)
            for index in samples.indices { samples[index].count(from: start.time) }
            open = OpenRecord(
                record: makeRecord(time),
                leadUp: LeadUpReader(of: loop, context, start: start.time))
            submit(activity(poll.load), turns: turns, context, at: time)
        case .end(let end):
            open?.record.state = .ended
            var load = poll.load
            load.idle &-= min(time &- min(end, time), load.idle)
            load.time = max(end, start.time)
            let threshold = open?.record.threshold ?? 0
            open?.record.duration = max(load.time &- start.time, threshold)
            submit(activity(load), turns: turns, context, at: time)
            self = LoadPeriod()
        case .drop:
            self = LoadPeriod()
        }
    }

    func leave(_ context: WatchdogContext, since start: LoopLoad?, at time: UInt64) {
        guard let open, let start else { return }
        open.record.state = .abandoned
        open.record.duration = time &- start.time
        open.submit(samples, context)
    }

    /// Adds a sample if the thread could be captured; no stop stays pending.
    private mutating func sample(
        _ target: CaptureTarget, _ context: WatchdogContext, at time: UInt64, since start: UInt64
    ) {
        if context.options.ignoresDebugged, case .thread(let thread) = target, isTraced(thread) { return }
        var sample = context.sample(target, age: time &- start, mayWait: false)
        sample.isValid = true
        samples.add(sample)
    }

    private mutating func submit(
        _ activity: StallReport.Activity, turns: UInt64, _ context: WatchdogContext, at time: UInt64
    ) {
        open?.record.activity = activity
        open?.record.turns = turns
        open?.leadUp?.update(now: time, isWatched: context.isWatched)
        open?.submit(samples, context)
    }

    /// Whether all samples show the thread in one place, and there is one.
    var isInOnePlace: Bool { samples.count == 1 && stacks.count == 1 }

    /// The stacks, each with the number of looks that met it.
    var stacks: [(stack: CapturedStack, timesSeen: Int)] {
        samples.compactMap { sample in (try? sample.stack.get()).map { ($0, sample.timesSeen) } }
    }
}
