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
        var loops: [LoopMonitor] = []
        /// Increases when a loop is added or removed.
        var version = 0
        var isStopping = false
        /// The requests that the next pass answers.
        var requests: [ProgressRequest] = []
    }
    /// The largest age of the CPU steal reading, in nanoseconds: a new reading per poll would cost too much.
    private static let stealAge: UInt64 = 1_000_000_000

    private let shared = Mutex(Shared())
    private let rules: WatchdogOptions
    private let now: @Sendable () -> UInt64
    private let submit: @Sendable (StallRecord) -> Void
    /// Called on the watchdog after each pass, with all loops, the time, and whether it is the last one.
    private let passed: @Sendable ([LoopMonitor], UInt64, Bool) -> Void
    /// The number of times that all loops were polled.
    private let passes = Atomic<UInt64>(0)
    let alarm = WatchdogAlarm()
    /// Posted when the watchdog has begun to follow the loops that it was given before its start.
    let follows = Semaphore()
    let suppressed = SuppressionCounter()
    let pauses = PauseState()

    init(
        rules: WatchdogOptions, now: @escaping @Sendable () -> UInt64 = monotonicNow,
        submit: @escaping @Sendable (StallRecord) -> Void,
        passed: @escaping @Sendable ([LoopMonitor], UInt64, Bool) -> Void = { _, _, _ in }
    ) {
        self.rules = rules
        self.now = now
        self.submit = submit
        self.passed = passed
    }

    /// Adds loops to poll.
    func add(_ loops: [LoopMonitor]) {
        shared.withLock { shared in
            shared.loops += loops
            shared.version += 1
        }
        alarm.ring()
    }

    /// Stops polling the loops with the given label.
    func remove(label: String) {
        shared.withLock { shared in
            shared.loops.removeAll { $0.label == label }
            shared.version += 1
        }
        alarm.ring()
    }

    /// Makes ``run(capturing:)`` return.
    func stop() {
        shared.withLock { $0.isStopping = true }
        alarm.ring()
    }

    /// Waits until the watchdog has polled all loops at least once from now on.
    ///
    /// - Parameter deadline: The end of the wait, in monotonic nanoseconds.
    /// - Returns: Whether it has.
    func waitForPass(until deadline: UInt64) -> Bool {
        let before = passes.load(ordering: .acquiring)
        // The next pass to end may have begun before this call; the one after it has not.
        while passes.load(ordering: .acquiring) &- before < 2 {
            guard monotonicNow() < deadline else { return false }
            alarm.ring()
            nap()
        }
        return true
    }

    /// Returns whether the loops make progress, as a pass that begins after this call finds it.
    ///
    /// Wakes the watchdog. Never call it on the watchdog's own thread.
    ///
    /// - Parameter deadline: The end of the wait, in monotonic nanoseconds.
    /// - Returns: The answer; `nil` if the watchdog does not answer in time, or does not run any more.
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
        let capturer = TimedCapturer(capturer, now: now)
        let services = WatchdogContext(
            capturer: capturer, now: now, submit: submit, suppressed: suppressed, rules: rules
        )
        alarm.fence.prepare()
        var watches: [LoopSupervisor] = []
        var version = 0
        let clocks = WatchdogClocks()
        var steal = CPUSteal()
        var gaps = GapDetector()
        var counting: (from: UInt64, reason: SuppressionReason) = (0, .processStopped)
        // Taken together with the loops, so that an answer has every loop that was added before its request.
        var requests: [ProgressRequest] = []
        while true {
            let state = shared.withLock { shared in
                requests += shared.requests
                shared.requests = []
                return (shared.version, shared.isStopping, shared.loops)
            }
            if state.1 { break }
            if state.0 != version {
                version = state.0
                follow(state.2, &watches, services)
            }
            if passes.load(ordering: .relaxed) == 0 { follows.post() }
            let awake = clocks.read(capturing: capturer.timeTaken + services.timeOfChecks)
            let gap = gaps.wake(
                at: awake, firstBegin: watches.compactMap(\.turnBegan).min(),
                stolen: { steal.longest(until: CPUSteal()) }
            )
            if awake.monotonic &- steal.time >= Self.stealAge { steal = CPUSteal() }
            switch gap {
            case .held(let reason):
                counting = (now(), reason)
                suppressed.add(reason)
            case .stolen:
                suppressed.add(.cpuStolen)
                let threshold = watches.map(\.loop.threshold).min() ?? 0
                let deadline = awake.monotonic &+ GapDetector.gracePeriod(threshold: threshold)
                gaps.sleep(at: awake, until: deadline)
                alarm.sleep(until: deadline)
                continue
            case nil:
                break
            }
            let pausedUntil = pauses.countingFrom(at: now())
            if pausedUntil > counting.from { counting = (pausedUntil, .paused) }
            var deadline = UInt64.max
            for index in watches.indices {
                deadline = min(
                    deadline,
                    watches[index].poll(at: now(), countingFrom: counting.from, suppressed: counting.reason)
                )
            }
            passed(services.loops, now(), false)
            passes.wrappingAdd(1, ordering: .releasing)
            answer(&requests, watches)
            sleep(watches, version, until: deadline)
            gaps.sleep(at: awake, until: deadline)
            services.mayShareProcessor = deadline == .max || watches.contains(where: \.isInStall)
        }
        passed(services.loops, now(), true)
        for request in requests { request.answer(nil) }
        for index in watches.indices { watches[index].leave(at: now()) }
    }

    /// Sleeps until a deadline, or until a loop begins a turn that may be late before.
    ///
    /// Without a deadline every loop wakes the watchdog before anything can happen.
    private func sleep(_ watches: [LoopSupervisor], _ version: Int, until deadline: UInt64) {
        let time = now()
        let left = deadline - min(time, deadline)
        if deadline == .max || watches.contains(where: { $0.mayWake && left > $0.loop.threshold }) {
            alarm.park(until: deadline) { mayPark(watches, version) }
        } else {
            alarm.sleep(until: deadline)
        }
    }

    private func answer(_ requests: inout [ProgressRequest], _ watches: [LoopSupervisor]) {
        guard !requests.isEmpty else { return }
        let reading = ProgressReading(
            loops: LoopProgress.merged(watches.map(\.progress)), time: now(), isPaused: pauses.isPaused
        )
        for request in requests { request.answer(reading) }
        requests = []
    }

    /// Begins to supervise new loops, and leaves the loops that were removed.
    private func follow(_ loops: [LoopMonitor], _ watches: inout [LoopSupervisor], _ services: WatchdogContext) {
        services.loops = loops
        for index in watches.indices where !loops.contains(where: { $0 === watches[index].loop }) {
            watches[index].leave(at: now())
        }
        watches.removeAll { watch in !loops.contains { $0 === watch.loop } }
        for loop in loops where !watches.contains(where: { $0.loop === loop }) {
            watches.append(LoopSupervisor(loop, services))
        }
    }

    /// Whether no loop is in a turn, and neither a loop nor ``stop()`` waits for the watchdog.
    private func mayPark(_ watches: [LoopSupervisor], _ version: Int) -> Bool {
        shared.withLock { !$0.isStopping && $0.version == version } && watches.allSatisfy(\.mayPark)
    }
}

/// The clocks that show whether the watchdog itself was late; a reading costs one `pread` and two vDSO calls.
///
/// It is created and used on the watchdog's thread, because it keeps that thread's own file open.
final class WatchdogClocks {
    private let files = ThreadProc.ofThisThread([.schedstat])

    /// Reads the clocks.
    ///
    /// If the kernel does not record these times (CONFIG_SCHED_INFO), the process's CPU time takes their place.
    ///
    /// - Parameter capturing: The total time of captures so far, in nanoseconds. Their CPU time counts twice, which
    ///   hardly matters: a long capture spends its time waiting.
    /// - Returns: The clocks now.
    func read(capturing: UInt64) -> GapDetector.Reading {
        let times = files?.times.flatMap { $0.slices > 0 ? $0 : nil }
        return GapDetector.Reading(
            monotonic: monotonicNow(), boot: bootTimeNow(),
            occupied: capturing + (times.map { $0.onCPU + $0.runQueue } ?? 0),
            processTime: times == nil ? processTimeNow() : nil)
    }
}

/// The settings of a configuration that the watchdog uses.
struct WatchdogOptions: Sendable, Equatable {
    var capturesAllThreads = false
    var ignoresDebugged = true
    var saturationThreshold: UInt64?
    /// The number of thresholds after which a stall escalates; `nil` for never.
    var escalationMultiple: Int?
}

/// The app's pauses, and the end of the last one.
final class PauseState: Sendable {
    private let depth = Atomic<Int>(0)
    private let resumed = Atomic<UInt64>(0)

    /// Begins a pause, which lasts until the matching ``end(at:)``.
    ///
    /// Pauses nest.
    func begin() {
        depth.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }

    /// Ends a pause: turns are measured from `now` on.
    func end(at now: UInt64) {
        resumed.store(now, ordering: .sequentiallyConsistent)
        depth.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }

    /// Whether a pause is in progress.
    var isPaused: Bool { depth.load(ordering: .relaxed) > 0 }

    /// Returns when turns begin to count: at the end of the last pause, or at `now` during a pause.
    func countingFrom(at now: UInt64) -> UInt64 {
        depth.load(ordering: .sequentiallyConsistent) > 0 ? now : resumed.load(ordering: .sequentiallyConsistent)
    }
}

/// Counts suppressions by reason; the watchdog writes, and any thread may read.
final class SuppressionCounter: Sendable {
    private let counts = Mutex(SuppressionCounts())

    /// The counts so far.
    var current: SuppressionCounts { counts.withLock { $0 } }

    func add(_ reason: SuppressionReason) {
        counts.withLock { $0[reason] += 1 }
    }
}
