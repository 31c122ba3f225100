import LinuxSupport
import StackCapture
import StallReports

/// Looks at the threads of the task pool and of watched task executors, and reports those that are pinned.
///
/// A look only reads, in some 10 µs for each thread of the process, and the pool gets no task for it. So the watchdog does
/// not learn that the pool has work: it looks every second while threads run tasks, and every ten seconds while none does.
/// If it is awake for a loop in between, it looks a second after the last time. In a process with thousands of threads
/// it looks less often: all looks take 2 % of a CPU at most, and 10 % for the last proof.
struct PoolSupervisor {
    /// The longest time between two looks while threads run tasks, and while none does, in nanoseconds.
    static let interval: UInt64 = 1_000_000_000
    static let idleInterval: UInt64 = 10_000_000_000
    /// The most reports of threads that are pinned at the same time; others count in these, and follow when one ends.
    static let maximumReports = 8
    /// The time after a look in which no other one is due, as a multiple of its CPU time: 2 % of a CPU, and 10 % while more
    /// looks would show that a thread is pinned.
    static let restFactor = ExecutorThreads.restFactor
    private static let restFactorInDoubt: UInt64 = 10

    /// The time for which a task keeps a pinned thread at least, in nanoseconds; `nil` if none is reported.
    private let threshold: UInt64?
    private let timeOnCPU: @Sendable () -> UInt64
    private let tasks: @Sendable () -> PoolTasks
    private var detector: PinDetector
    private var pinned: [Int32: PinnedThread] = [:]
    /// Counts from the first look on, as a pin does: a quota throttles a thread also before it is known to be pinned.
    private var quota = CPUQuota()
    /// Whether the loops have pools, after so many changes of them.
    private var known = (changes: 0, hasPools: false)
    private var lastLook: UInt64?
    private var restsUntil: UInt64 = 0
    /// When the next look is due, in monotonic nanoseconds.
    private var due: UInt64 = 0
    /// The number of threads that were found pinned so far.
    private var number: UInt64 = 0

    /// `timeOnCPU` returns how long the watchdog has been on a CPU, in nanoseconds.
    init(
        threshold: UInt64?, timeOnCPU: @escaping @Sendable () -> UInt64 = { threadTimeNow() },
        tasks: @escaping @Sendable () -> PoolTasks
    ) {
        (self.threshold, self.timeOnCPU, self.tasks) = (threshold, timeOnCPU, tasks)
        detector = PinDetector(threshold: threshold ?? .max)
    }

    /// The time until the next look: short while more looks would show that a thread is pinned, and uneven, so that a task with a
    /// period of its own is not met in the same place each time.
    private func interval(_ threshold: UInt64, at now: UInt64) -> UInt64 {
        let whole = min(threshold, Self.interval)
        let interval = detector.hasDoubts ? max(whole / 16, 10_000_000) : whole
        return interval &+ now % max(interval / 8, 1)
    }

    /// Takes a look if one is due, or at once (`isForced`) while a thread is pinned; returns when the next one is due.
    ///
    /// If the process `wasStopped` until `countingFrom`, what was pinned before has a report up to the last look.
    ///
    /// While the whole pool does not start tasks in time (`isStarved`), its own report is about all threads of the queue in
    /// which the heartbeat waits, or soon will be. So a pin of that queue has a report of its own only once the heartbeat has
    /// run, or is no proof.
    mutating func look(
        at now: UInt64, countingFrom: UInt64, wasStopped: Bool = false, isForced: Bool,
        isStarved: @autoclosure () -> Bool, _ context: WatchdogContext
    ) -> UInt64 {
        guard let threshold, hasPools(context) else {
            leave(at: now, context)
            return .max
        }
        if wasStopped, let lastLook, lastLook < countingFrom {
            leave(at: lastLook, context)
            detector = PinDetector(threshold: threshold)
        }
        if !pinned.isEmpty, isStarved() { leaveToStarvation(WatchedPools(context)) }
        let interval = interval(threshold, at: now)
        if detector.hasLeft, !isStarved() {
            detector.recall()
            due = min(due, max(now &+ interval, restsUntil))
        }
        let isEarly = now < restsUntil || lastLook.map { now &- $0 < interval } ?? false
        guard now >= due || !isEarly || isForced && !pinned.isEmpty else { return due }
        let reader: PoolReader
        switch tasks() {
        case .reader(let tasks): reader = PoolReader(tasks)
        case .inPreparation:
            due = now &+ interval
            return due
        case .unreadable: return .max
        }
        lastLook = now
        let before = timeOnCPU()
        let pools = WatchedPools(context)
        var seen = reader.look(pools)
        let (looked, cost) = (context.now(), timeOnCPU() &- before)
        if let thread = seen.first?.sighting.thread {
            let throttled = quota.throttled(thread: thread)
            for index in seen.indices { seen[index].sighting.reading.throttled = throttled }
        }
        let actions = detector.decide(seen.map(\.sighting), at: now, countingFrom: countingFrom)
        restsUntil = looked &+ cost &* (detector.hasDoubts ? Self.restFactorInDoubt : Self.restFactor)
        for action in actions {
            switch action {
            case .begin(let pin):
                guard let thread = seen.first(where: { $0.sighting.thread == pin.thread }) else { continue }
                if pools.awaitsHeartbeat(in: thread), isStarved() {
                    detector.leave(pin.thread)
                } else if pinned.count >= Self.maximumReports {
                    detector.postpone(pin.thread)
                } else if !begin(pin, thread, reader, context) {
                    detector.excuse(pin.thread)
                }
            case .check(let thread):
                guard let now = seen.first(where: { $0.sighting.thread == thread }) else { continue }
                pinned[thread]?.check(context) { reader.isRunning(now) }
            case .end(let thread, let end):
                guard var ended = pinned.removeValue(forKey: thread) else { continue }
                ended.end(at: end, context)
            case .count: context.suppressed.add(.noTaskWaited)
            }
        }
        // All that begin at one look count, and all that is new is in their reports.
        for thread in seen {
            pinned[thread.sighting.thread]?.update(
                pinned: detector.count(ofPool: thread.sighting.pool), waiting: thread.waitingTasks)
        }
        for thread in seen {
            pinned[thread.sighting.thread]?.submit(context, isWatched: pools.awaitsHeartbeat(in: thread))
        }
        let check = pinned.values.lazy.map(\.nextCheck).min() ?? .max
        let next = detector.isQuiet ? Self.idleInterval : self.interval(threshold, at: now)
        due = min(max(now &+ next, restsUntil), max(check, context.now()))
        return due
    }

    /// Drops the pinned threads that have no report yet, and whose whole queue the report of a starved pool is about.
    private mutating func leaveToStarvation(_ pools: WatchedPools) {
        for (thread, pin) in pinned where !pin.isReported && pools.awaitsHeartbeat(in: pin.seen) {
            pinned[thread] = nil
            detector.leave(thread)
        }
    }

    /// Returns whether a pool is among the loops: there may be thousands, and most passes come for one of them.
    private mutating func hasPools(_ context: WatchdogContext) -> Bool {
        if context.changesOfLoops != known.changes {
            known = (context.changesOfLoops, !WatchedPools(context).isEmpty)
        }
        return known.hasPools
    }

    /// Begins the report of a pinned thread; returns `false` if it is to have none.
    private mutating func begin(
        _ pin: PinDetector.Pin, _ seen: PoolReader.Sighting, _ reader: PoolReader, _ context: WatchdogContext
    ) -> Bool {
        if context.options.ignoresDebugged, isTraced(pin.thread) {
            context.suppressed.add(.debugger)
            return false
        }
        var thread = PinnedThread(pin, seen, number: number + 1, threshold: threshold ?? 0, quota, context)
        // Its stack must be one of the task's.
        guard thread.begin(context), reader.isRunning(seen) else { return false }
        number += 1
        pinned[pin.thread] = thread
        return true
    }

    /// Reports the threads that are still pinned as abandoned.
    mutating func leave(at time: UInt64, _ context: WatchdogContext) {
        for var thread in pinned.values { thread.leave(at: time, context) }
        pinned = [:]
    }

    /// Reports as over what has ended since the last look and the task that stops the monitor, and the rest as abandoned.
    mutating func stop(at time: UInt64, stoppedBy stopper: Int32?, _ context: WatchdogContext) {
        if !pinned.isEmpty, case .reader(let tasks) = tasks() {
            let reader = PoolReader(tasks)
            for (id, var thread) in pinned {
                // A reading may fail because the runtime writes at the same time.
                let isOver = !reader.isRunning(thread.seen) && !reader.isRunning(thread.seen)
                guard isOver || id == stopper else { continue }
                thread.end(at: isOver ? lastLook ?? time : time, context)
                pinned[id] = nil
            }
        }
        leave(at: time, context)
    }
}

/// A pinned thread, its samples and its report.
private struct PinnedThread {
    let seen: PoolReader.Sighting
    private var thread: Int32 { seen.sighting.thread }
    /// When the time began in which the task was seen on the thread, in monotonic nanoseconds.
    private let start: UInt64
    private var log: TurnLog
    private var diagnostician: StallDiagnostician
    private let open: OpenRecord
    private var samples = 0
    private var nextSample: UInt64 = 0
    private(set) var nextCheck: UInt64 = 0
    private var hasNews = false
    private(set) var isReported = false

    init(
        _ pin: PinDetector.Pin, _ seen: PoolReader.Sighting, number: UInt64, threshold: UInt64,
        _ quota: CPUQuota, _ context: WatchdogContext
    ) {
        (self.seen, start) = (seen, pin.first.time)
        log = TurnLog(began: start)
        diagnostician = StallDiagnostician(threads: context.threads, waits: WaitClock())
        diagnostician.begin(pin.thread, at: pin.first, quota)
        let loop = StallRecord.Loop(
            label: seen.label, kind: seen.kind, turn: number, nesting: 0, thread: .init(ThreadIdentity(pin.thread)))
        var record = StallRecord(.pinned, loop, threshold: threshold, age: context.now() &- start)
        record.startUncertainty = pin.uncertainty
        record.pool = StallReport.Pool(
            pinnedThreads: 1, width: seen.width, waitingTasks: seen.waitingTasks,
            isComputing: pin.hold == .computing ? true : nil, actor: seen.actor)
        open = OpenRecord(record: record)
    }

    /// Takes the first sample; returns `false` if the wait is what the process is for.
    mutating func begin(_ context: WatchdogContext) -> Bool {
        inspect(context, isFirst: true)
        let frames = (try? log.samples.last?.stack.get())?.frames ?? []
        return !ToolWait.isExpected(
            of: seen.sighting.task, in: log.observations.last?.activity.call, frames, context)
    }

    mutating func check(_ context: WatchdogContext, whileRunning isRunning: () -> Bool) {
        if context.now() >= nextCheck { inspect(context, isFirst: false, whileRunning: isRunning) }
    }

    private mutating func inspect(
        _ context: WatchdogContext, isFirst: Bool, whileRunning isRunning: () -> Bool = { true }
    ) {
        var last: (ThreadProbe, ThreadReading)?
        if let reading = diagnostician.read(thread), let probe = diagnostician.probe { last = (probe, reading) }
        // For a sample of the report the thread may always be stopped.
        let isDue = context.now() >= nextSample
        let inspection = log.inspect(
            .thread(thread), last, context, mayStop: isDue ? nil : { [mayStop = log.mayStop] in mayStop },
            mayWait: false)
        // A stack from after the task has left is another one's: the next look ends this.
        guard inspection.isUnchanged || isRunning() else { return }
        if isFirst { diagnostician.forgetStall() }
        if inspection.isUnchanged {
            if let reading = inspection.reading { diagnostician.readOwner(reading) }
        } else if let observation = diagnostician.observeLate(thread, inspection.reading, stack: inspection.stack) {
            var sample = inspection.sample
            sample.isValid = true
            let kept = diagnostician.kept(
                observation, stack: inspection.stack, start: start, isFirst: isFirst, end: nil)
            log.add(sample, kept)
        }
        let schedule = SampleSchedule.standard
        let age = context.now() &- start
        if isDue {
            samples += 1
            nextSample = schedule.next(after: samples, age: age).map { start &+ $0 } ?? .max
        }
        // Checks in between find where a thread waits; one that computes would have to be stopped for them.
        nextCheck = open.record.pool?.isComputing == true ? nextSample : start &+ schedule.nextCheck(age: age)
        guard isDue else { return }
        open.record.duration = max(open.record.duration, age)
        open.record.cause = judged(diagnostician.cause(thread, start: start, log.observations))
        hasNews = true
    }

    /// That a task has computed without a pause is likely at most, and so is what kept it.
    private func judged(_ cause: Cause?) -> Cause? {
        guard var cause, open.record.pool?.isComputing == true, cause.confidence == .certain else { return cause }
        cause.confidence = .likely
        return cause
    }

    /// Takes over the number of the pool's pinned threads, and of the tasks that wait: the largest counts.
    mutating func update(pinned: Int, waiting: Int?) {
        guard var pool = open.record.pool else { return }
        pool.pinnedThreads = max(pinned, pool.pinnedThreads)
        pool.waitingTasks = waiting.map { max($0, pool.waitingTasks ?? 0) } ?? pool.waitingTasks
        open.record.pool = pool
    }

    /// Hands over what is new.
    ///
    /// While a heartbeat waits in the thread's queue (`isWatched`), a first report waits for the time over which that is late.
    mutating func submit(_ context: WatchdogContext, isWatched: Bool) {
        if isWatched, !isReported, context.now() &- start < 2 * open.record.threshold { return }
        guard hasNews.take() else { return }
        isReported = true
        open.submit(log.samples, context)
    }

    mutating func end(at end: UInt64, _ context: WatchdogContext) {
        open.record.state = .ended
        open.record.duration = max(end &- min(start, end), open.record.threshold, open.record.duration)
        let cause = diagnostician.end(
            thread, start: start, end: start &+ open.record.duration, log.observations, isEndKnown: false)
        open.record.cause = judged(cause) ?? open.record.cause
        open.submit(log.samples, context)
    }

    mutating func leave(at time: UInt64, _ context: WatchdogContext) {
        open.record.state = .abandoned
        open.record.duration = max(time &- min(start, time), open.record.duration)
        open.submit(log.samples, context)
    }
}
