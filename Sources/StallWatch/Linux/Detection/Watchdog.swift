internal import CLinux
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

/// The thread that polls all watched loops of a monitor.
///
/// It sleeps until the earliest moment at which a turn could reach its threshold, and takes samples of stalls. It
/// leaves all slow work to the reporter. While every loop is observed and waits, it is parked and never wakes up.
final class Watchdog: Sendable {
    private struct Shared {
        /// What has changed since the last pass.
        var added: [LoopMonitor] = []
        var removed: [LoopMonitor] = []
        var requests: [ProgressRequest] = []
        var isStopping = false
        var stopper: Int32?
        var tasks: CapturedTasks?
    }
    private let shared = Mutex(Shared())
    private let options: WatchdogOptions
    private let now: @Sendable () -> UInt64
    private let submit: @Sendable (StallRecord) -> Void
    /// Called on the watchdog after each pass, with all loops, the time, and whether it is the last one.
    private let passed: @Sendable ([LoopMonitor], UInt64, Bool) -> Void
    /// Serves other deadlines after a pass, at a time and since when time counts; returns the next (monotonic ns).
    private let serve: @Sendable (UInt64, UInt64) -> UInt64
    private let operations: @Sendable () -> OperationsReading
    private let tasks: @Sendable () -> PoolTasks
    let alarm: WatchdogAlarm
    let suppressed: SuppressionCounter
    let pauses = PauseState()

    init(
        options: WatchdogOptions, suppressed: SuppressionCounter = SuppressionCounter(),
        alarm: WatchdogAlarm = WatchdogAlarm(),
        now: @escaping @Sendable () -> UInt64 = monotonicNow,
        submit: @escaping @Sendable (StallRecord) -> Void,
        passed: @escaping @Sendable ([LoopMonitor], UInt64, Bool) -> Void = { _, _, _ in },
        serve: @escaping @Sendable (UInt64, UInt64) -> UInt64 = { _, _ in .max },
        operations: @escaping @Sendable () -> OperationsReading = { OperationsReading() },
        tasks: @escaping @Sendable () -> PoolTasks = { .unreadable }
    ) {
        self.options = options
        self.suppressed = suppressed
        self.alarm = alarm
        self.now = now
        self.submit = submit
        self.passed = passed
        self.serve = serve
        self.operations = operations
        self.tasks = tasks
    }

    func add(_ loops: [LoopMonitor]) {
        shared.withLock { $0.added += loops }
        alarm.ring()
    }

    func remove(_ loops: [LoopMonitor]) {
        shared.withLock { $0.removed += loops }
        alarm.ring()
    }

    /// Adds the process's tasks to the reports of stalls that end from now on: those of a dump of a hang.
    func report(_ tasks: CapturedTasks?) {
        shared.withLock { $0.tasks = tasks }
    }

    /// Makes ``run(capturing:)`` return; if the calling thread runs a loop, its turn is over.
    func stop(by thread: Int32? = nil) {
        shared.withLock { ($0.isStopping, $0.stopper) = (true, thread) }
        alarm.ring()
    }

    /// Waits until the watchdog has polled all loops at least once from now on; returns `false` at the deadline.
    func waitForPass(until deadline: UInt64) -> Bool { readProgress(until: deadline) != nil }

    /// Wakes the watchdog, never on its own thread, and returns what its next pass finds; `nil` without an answer.
    func readProgress(until deadline: UInt64) -> ProgressReading? {
        let request = ProgressRequest()
        let isRunning = shared.withLock { shared in
            if !shared.isStopping { shared.requests.append(request) }
            return !shared.isStopping
        }
        guard isRunning else { return nil }
        alarm.ring()
        let reading = request.wait(until: deadline)
        // A watchdog that does not run must not collect requests.
        if reading == nil { shared.withLock { $0.requests.removeAll { $0 === request } } }
        return reading
    }

    /// Runs the watchdog on the calling thread until ``stop()``.
    func run(capturing capturer: any StackCapturing) {
        let context = WatchdogContext(
            capturer: capturer, now: now, submit: submit, suppressed: suppressed, options: options,
            operations: operations, delaysNoTask: { [tasks] in PoolReader.delaysNoTask($0, among: $1, tasks) })
        var supervisors: [LoopSupervisor] = []
        var pool = PoolSupervisor(threshold: options.pinnedThreshold, tasks: tasks)
        var schedule = PollSchedule()
        var timekeeper = Timekeeper()
        // Taken together with the loops, so that an answer has every loop that was added before its request.
        var requests: [ProgressRequest] = []
        var isFirst = true
        while applyChanges(&supervisors, &schedule, &requests, context) {
            if let graceEnd = timekeeper.wake(
                capturing: capturer.timeTaken + context.timeOfChecks, schedule, suppressed, now)
            {
                timekeeper.sleep(at: now(), until: graceEnd)
                alarm.sleep(until: graceEnd)
                continue
            }
            timekeeper.resume(from: pauses.countingFrom(at: now()))
            let began = now()
            context.beginPass()
            for index in supervisors.indices where schedule.needsPoll(index, at: began) || !requests.isEmpty {
                let time = now()
                let due = supervisors[index].poll(
                    at: time, countingFrom: timekeeper.countingFrom, excusedUntil: timekeeper.excusedUntil,
                    suppressed: timekeeper.reason)
                schedule.update(index, supervisors[index].outcome(due: due), at: time)
            }
            var nextLook = UInt64.max
            context.timeCheck {
                nextLook = pool.look(
                    at: now(), countingFrom: timekeeper.countingFrom,
                    wasStopped: timekeeper.reason == .processStopped, isForced: !requests.isEmpty,
                    isStarved: supervisors.contains(where: \.isStarved), context)
            }
            context.threads.peers.begin()
            // The first look comes before them: they may take some 10 ms.
            if isFirst {
                context.timeCheck {
                    clinux_grow_heap()
                    alarm.fence.prepare()
                }
            }
            isFirst = false
            // Who asks may wait for the reports of all stalls so far.
            if !requests.isEmpty { for index in supervisors.indices { supervisors[index].reportFollowed(at: now()) } }
            passed(context.loops, now(), false)
            answer(&requests, supervisors)
            let deadline = min(schedule.next, nextLook, serve(now(), timekeeper.countingFrom))
            sleep(schedule, until: deadline, &timekeeper)
        }
        passed(context.loops, now(), true)
        for request in requests { request.answer(nil) }
        let stopper = shared.withLock { $0.stopper }
        for index in supervisors.indices { supervisors[index].leave(at: now(), stoppedBy: stopper) }
        pool.stop(at: now(), stoppedBy: stopper, context)
    }

    /// Follows the changes of the list of loops, and takes the requests; returns `false` if the watchdog is to end.
    private func applyChanges(
        _ supervisors: inout [LoopSupervisor], _ schedule: inout PollSchedule, _ requests: inout [ProgressRequest],
        _ context: WatchdogContext
    ) -> Bool {
        let changes = shared.withLock { shared in
            let changes = shared
            (shared.added, shared.removed, shared.requests) = ([], [], [])
            return changes
        }
        requests += changes.requests
        context.tasks = changes.tasks
        guard !changes.isStopping else { return false }
        for loop in changes.added {
            supervisors.append(LoopSupervisor(loop, context))
            schedule.add(loop.recorder)
            // Prepares on another thread, which a look at all threads may meet.
            if loop.source.kind == .cooperativePool { _ = tasks() }
        }
        let added = changes.added.filter { $0.source.receiver == nil }
        if !added.isEmpty { context.loops += added }
        guard !changes.removed.isEmpty else { return true }
        // Not by the label, with which a loop may have been added meanwhile.
        let removed = Set(changes.removed.map { ObjectIdentifier($0.recorder) })
        func isRemoved(_ recorder: TurnRecorder) -> Bool { removed.contains(ObjectIdentifier(recorder)) }
        for index in supervisors.indices where isRemoved(supervisors[index].loop.recorder) {
            supervisors[index].leave(at: now())
        }
        supervisors.removeAll { isRemoved($0.loop.recorder) }
        schedule.remove(where: isRemoved)
        context.loops.removeAll { isRemoved($0.recorder) }
        return true
    }

    /// Sleeps until a deadline, or until a loop begins a turn that may be late before.
    private func sleep(_ schedule: PollSchedule, until deadline: UInt64, _ timekeeper: inout Timekeeper) {
        let time = now()
        let sleep = schedule.sleep(at: time, until: deadline)
        timekeeper.sleep(at: time, until: sleep.deadline)
        // Who changes something else for the watchdog rings.
        if sleep.isParked {
            alarm.park(until: sleep.deadline) { schedule.mayPark }
        } else {
            alarm.sleep(until: sleep.deadline)
        }
    }

    private func answer(_ requests: inout [ProgressRequest], _ supervisors: [LoopSupervisor]) {
        guard !requests.isEmpty else { return }
        let reading = ProgressReading(
            loops: LoopProgress.merged(supervisors.compactMap { $0.loop.source.receiver == nil ? $0.progress : nil }),
            time: now(), isPaused: pauses.isPaused
        )
        for request in requests { request.answer(reading) }
        requests = []
    }
}

struct WatchdogSleep: Equatable {
    struct FollowedLoop {
        var threshold: UInt64
        var mayWake: Bool
        var mayPark: Bool
        /// Whether the next poll may be for its load only.
        var isLoadFollowed: Bool
    }

    var deadline: UInt64
    /// Whether a turn that begins ends the sleep, which costs that turn a system call.
    var isParked: Bool

    init(deadline: UInt64, isParked: Bool) { (self.deadline, self.isParked) = (deadline, isParked) }

    /// Decides for the watched loops, at a moment and until the next poll, both in monotonic nanoseconds.
    ///
    /// A loop that waits may begin a turn that is late before the deadline of the others. Where all others wait, too, its
    /// turn ends the sleep; but each turn of a loop that is busy would, so then the sleep ends before a turn can be late.
    init(_ loops: some Sequence<FollowedLoop>, at time: UInt64, until deadline: UInt64) {
        let left = deadline - min(time, deadline)
        var threshold: UInt64?
        var mayPark = true
        for loop in loops {
            mayPark = mayPark && loop.mayPark
            guard loop.mayWake, left > loop.threshold || loop.isLoadFollowed else { continue }
            threshold = min(threshold ?? .max, loop.threshold)
        }
        isParked = deadline == .max || threshold != nil && mayPark
        self.deadline = isParked ? deadline : min(deadline, threshold.map { time &+ $0 } ?? .max)
    }
}

/// Detects when the watchdog wakes up late, and decides from which moment turns count then.
struct Timekeeper {
    /// The largest age of the CPU steal reading, in nanoseconds: a new reading per poll would cost too much.
    private static let stealAge: UInt64 = 1_000_000_000

    private var clocks = WatchdogClocks()
    private var steal = CPUSteal()
    private var gaps = GapDetector()
    private var awake = GapDetector.Reading(monotonic: 0, boot: 0, occupied: 0)
    /// The moment from which the age of a turn counts, in monotonic nanoseconds.
    private(set) var countingFrom: UInt64 = 0
    /// The end of the last grace period: turns that ended by then are no stalls.
    private(set) var excusedUntil: UInt64 = 0
    private(set) var reason = SuppressionReason.processStopped

    /// Ends the sleep of the watchdog, after `capturing` nanoseconds of captures and checks so far, and counts a
    /// time in which no thread ran; returns the end of a grace period if the host may have delayed the turns.
    mutating func wake(
        capturing: UInt64, _ schedule: PollSchedule, _ suppressed: SuppressionCounter, _ now: () -> UInt64
    ) -> UInt64? {
        awake = clocks.read(capturing: capturing)
        let gap = gaps.wake(
            at: awake, firstBegin: schedule.firstBegin,
            stolen: { [steal] in steal.longest(until: CPUSteal()) }
        )
        if awake.monotonic &- steal.time >= Self.stealAge { steal = CPUSteal() }
        switch gap {
        case .held(let reason):
            (countingFrom, self.reason) = (now(), reason)
            suppressed.add(reason)
            return nil
        case .stolen:
            suppressed.add(.cpuStolen)
            excusedUntil = awake.monotonic &+ GapDetector.gracePeriod(threshold: schedule.threshold)
            return excusedUntil
        case nil:
            return nil
        }
    }

    /// Makes turns count from `time` on, because the app had paused the monitor until then.
    mutating func resume(from time: UInt64) {
        if time > countingFrom { (countingFrom, reason) = (time, .paused) }
    }

    /// Begins a sleep from `time`, after its last wake-up, until `deadline`, in monotonic nanoseconds.
    mutating func sleep(at time: UInt64, until deadline: UInt64) {
        let isOwn = time &- awake.monotonic > UnreadTime.limit && clocks.showNoStop
        gaps.sleep(at: awake, ownUntil: isOwn ? time : nil, until: deadline)
        clocks.unread.sleep(awakeSince: awake.monotonic, at: time, until: deadline)
    }
}

/// The clocks that show whether the watchdog itself was late, by three vDSO calls, a system call, one for each thread
/// of the monitor, and sometimes two more; to be created and used on its thread, whose file they keep open.
struct WatchdogClocks {
    private let probe = try? ThreadProbe(ofThisThread: [.schedstat, .kept])
    private var times: ThreadReading?
    private var resting = RestingThreads()
    var unread = UnreadTime()

    /// Whether the process was certainly not stopped since the last reading.
    var showNoStop: Bool { resting.haveRested { cpuTime(of: $0) } }

    /// Reads the clocks; `capturing` is the total time of captures and checks so far, in nanoseconds.
    ///
    /// If the kernel does not record the others (CONFIG_SCHED_INFO), the process's CPU time takes their place. The CPU
    /// time of captures counts twice, which hardly matters: a long capture spends its time waiting.
    mutating func read(capturing: UInt64) -> GapDetector.Reading {
        // First, so that no stop comes between. A kernel without schedstat (gVisor) may count CPU time in ticks.
        resting.begin(times == nil ? [] : WorkerThread.ids) { cpuTime(of: $0) }
        let clocks = ClockPair()
        if unread.wake(at: clocks.monotonic) { times = probe?.read().flatMap { $0.showsRunQueue ? $0 : nil } }
        return GapDetector.Reading(
            monotonic: clocks.monotonic, boot: clocks.boot, uncertainty: clocks.uncertainty,
            occupied: capturing + (times?.used ?? 0),
            processTime: times == nil ? processTimeNow() : nil, majorFaults: threadMajorFaults())
    }
}

struct WatchdogOptions: Sendable, Equatable {
    var capturesAllThreads = false
    var ignoresDebugged = true
    /// The time that a loop may go without waiting, in nanoseconds; `nil` for no limit.
    var saturationThreshold: UInt64?
    /// When the default mode of a run loop starves; `nil` for never, also of a loop that no thread runs.
    var modeRule: ModeStarvationDetector.Rule?
    /// The time for which a task may keep a thread of a pool, in nanoseconds; `nil` for any.
    var pinnedThreshold: UInt64?
    var watchesPoolWithMain = true
    /// The number of thresholds after which a stall escalates; `nil` for never.
    var escalationMultiple: Int?
}

final class PauseState: Sendable {
    private let depth = Atomic<Int>(0)
    private let resumed = Atomic<UInt64>(0)

    /// Begins a pause, which lasts until the matching ``end(at:)``; pauses nest.
    func begin() {
        depth.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }

    func end(at now: UInt64) {
        resumed.store(now, ordering: .sequentiallyConsistent)
        depth.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }

    var isPaused: Bool { depth.load(ordering: .relaxed) > 0 }

    /// Returns when turns begin to count: at the end of the last pause, or at `now` during a pause.
    func countingFrom(at now: UInt64) -> UInt64 {
        depth.load(ordering: .sequentiallyConsistent) > 0 ? now : resumed.load(ordering: .sequentiallyConsistent)
    }
}

/// Counts suppressions by reason; the watchdog writes, and any thread may read.
final class SuppressionCounter: Sendable {
    private let counts = Mutex(SuppressionCounts())

    var current: SuppressionCounts { counts.withLock { $0 } }

    func add(_ reason: SuppressionReason) {
        counts.withLock { $0[reason] += 1 }
    }
}
