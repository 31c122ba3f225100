import CLinux
import Glibc
import StackCapture
import StallReports
import LinuxSupport
import Synchronization
import StallSymbols

/// Watches event loops and reports each turn that takes too long, with the stack of the loop's thread.
///
/// ```swift
/// let monitor = try StallMonitor(.init(threshold: .milliseconds(250), reports: .directory("stalls")))
/// try monitor.watch(.mainRunLoop)
/// try monitor.start()
/// ```
///
/// A run loop's thread pays for two observers per turn: a few clock reads and atomic stores, with no lock and no
/// allocation. It makes a system call only to learn a new thread's id, or to wake the watchdog: for the first turn
/// after all loops have waited, and when a stall ends. All other work runs on threads that belong to the monitor.
///
/// A monitor is used once: create it, start it, stop it. While it runs it keeps itself, until ``stop()``: the program
/// needs no reference to it. All of its methods may be called on any thread.
public final class StallMonitor: Sendable {
    /// Whether monitors find stalls on this platform: `true` on Linux.
    ///
    /// Elsewhere the library has the same interface, so that the program builds there, too; its monitors do nothing.
    public static let isSupported = true
    /// The configuration of the monitor.
    public let configuration: Configuration

    /// The longest wait of ``start()`` for the watchdog, in nanoseconds; a fraction of a millisecond on a quiet machine.
    private static let longestBegin: UInt64 = 100_000_000

    enum Phase {
        case made
        case running(Threads)
        case stopped
    }
    struct Threads {
        let watchdog: WorkerThread
        let reporter: WorkerThread
        let notice: CapabilityNotice
        /// `nil` if the system has refused the thread; then the notice is not given.
        let noticeThread: WorkerThread?
    }
    struct State {
        var phase = Phase.made
        var loops: [String: [LoopMonitor]] = [:]
        var identities: [String: ObjectIdentifier] = [:]
        /// When the monitor began to watch each loop, in monotonic nanoseconds.
        var watchedSince: [String: UInt64] = [:]
        /// When the monitor started and stopped, in monotonic nanoseconds.
        var started: UInt64?
        var stopped: UInt64?
        /// Whether the engine has found that ptrace works; `nil` before the start.
        var mayUsePtrace: Bool?

        /// Removes the sources of all loops, which is harmless for a source that is already removed.
        func removeSources() {
            for loop in loops.values.joined() { loop.source.remove() }
        }
    }
    let state = Mutex(State())
    let watchdog: Watchdog
    let reporter: Reporter
    let operations: OperationWatch
    let healthSource: HealthSource
    /// Tells supervisors; `nil` if the configuration names none.
    private let healthReporter: HealthReporter?
    private let control = Mutex<ControlService?>(nil)
    /// The process that has started the monitor; 0 for none.
    private let startedBy = Atomic<pid_t>(0)
    let latestStalls = LatestStalls()

    /// Creates a monitor that does not watch any loop yet.
    ///
    /// It creates the report directory and checks that it can write files there, and that it can write the health file.
    ///
    /// - Parameter configuration: The monitor's settings.
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` for a value out of its range, and
    ///   ``StallWatchError/Code/unwritableReports`` if reports cannot be written.
    public init(_ configuration: Configuration = Configuration()) throws(StallWatchError) {
        self.configuration = configuration
        try configuration.check()
        var settings = Reporter.Settings {
            ReportBuilder(
                process: .current(), metadata: configuration.metadata, inApp: configuration.inApp,
                symbolication: .inProcess(configuration.symbolication, inApp: configuration.inApp),
                missingContextReason: StallContext.calibration.problem
            )
        }
        settings.reportsPerMinute = configuration.maximumReportsPerMinute
        settings.reportsEveryRepeat = configuration.reportsEveryRepeat
        settings.pathStyle = configuration.pathStyle
        settings.redact = configuration.redact
        settings.escalation = configuration.escalation?.action
        settings.terminationLog = configuration.terminationLog
        let health = HealthSource(interval: configuration.health.flatMap { $0.path == nil ? nil : $0.nanoseconds })
        healthSource = health
        let healthReporter = try configuration.health.map { output throws(StallWatchError) in
            try HealthReporter(output, source: health)
        }
        self.healthReporter = healthReporter
        let latest = configuration.control == nil ? nil : latestStalls
        settings.noted = { report in
            health.note(report)
            latest?.note(report)
            healthReporter?.wake()
        }
        let options = configuration.watchdogOptions
        reporter = try Reporter(settings: settings, sinks: configuration.allSinks)
        let intervals = reporter.intervalLength.map(TurnIntervals.init)
        watchdog = Watchdog(options: options, submit: reporter.submit) { [reporter] loops, now, isLast in
            if let intervals { reporter.submit(intervals.pass(loops, at: now, isLast: isLast)) }
        }
        operations = OperationWatch(
            options: options, pauses: watchdog.pauses, suppressed: watchdog.suppressed, submit: reporter.submit)
    }

    // A running monitor is kept by its watchdog, so this never waits for a thread.
    deinit {
        stop()
    }

    /// Adds a loop to watch, from its next turn on.
    ///
    /// It may be called before ``start()`` and while the monitor runs.
    ///
    /// - Parameter loop: The loop to watch.
    /// - Throws: ``StallWatchError/Code/alreadyWatched`` if this monitor already watches the loop or another one with
    ///   its label, or if another monitor watches the same ``LoopProbe``; ``StallWatchError/Code/invalidConfiguration``
    ///   for a threshold out of range; ``StallWatchError/Code/stopped`` after ``stop()``; and
    ///   ``StallWatchError/Code/systemFailure`` if the loop cannot be observed.
    public func watch(_ loop: WatchedLoop) throws(StallWatchError) {
        try watch(loop, isServed: false)
    }

    /// Adds a loop to watch, whose first heartbeat counts if the loop is known to run items (`isServed`).
    package func watch(_ loop: WatchedLoop, isServed: Bool) throws(StallWatchError) {
        let threshold = try Configuration.checked(loop.threshold ?? configuration.threshold)
        try state.withLock { state throws(StallWatchError) in
            if case .stopped = state.phase {
                throw StallWatchError(
                    .stopped, "the monitor has been stopped: create a new one to watch \(loop.label)"
                )
            }
            guard state.loops[loop.label] == nil else {
                throw StallWatchError(
                    .alreadyWatched, "the label \(loop.label) is already in use: give each loop a label of its own"
                )
            }
            if let identity = loop.identity, let label = state.identities.first(where: { $0.value == identity })?.key {
                throw StallWatchError(
                    .alreadyWatched, "the loop \(loop.label) is already watched, as \(label): watch it once"
                )
            }
            let monitors = try loop.makeMonitors(
                threshold: threshold, alarm: watchdog.alarm, isServed: isServed)
            state.loops[loop.label] = monitors
            state.identities[loop.label] = loop.identity
            state.watchedSince[loop.label] = monotonicNow()
            watchdog.add(monitors)
        }
    }

    /// Stops watching the loop with the given label.
    ///
    /// If the loop is in a stall, the stall is reported as `abandoned`. If there is no such loop, the call does
    /// nothing.
    ///
    /// - Parameter label: The loop's label.
    public func unwatch(_ label: String) {
        let monitors = state.withLock { state in
            state.identities[label] = nil
            return state.loops.removeValue(forKey: label) ?? []
        }
        // The watchdog removes the sources when it runs; a monitor that never started has no watchdog.
        for monitor in monitors { monitor.source.remove() }
        watchdog.remove(monitors)
    }

    /// Changes the threshold of the loop with the given label.
    ///
    /// The new threshold applies from the watchdog's next poll on.
    ///
    /// - Parameters:
    ///   - threshold: The duration from which a turn is a stall: 5 ms to 24 hours.
    ///   - label: The loop's label.
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` if the threshold is out of range or there is no such
    ///   loop.
    public func setThreshold(_ threshold: StallThreshold, of label: String) throws(StallWatchError) {
        let threshold = try Configuration.checked(threshold)
        guard let monitors = state.withLock({ $0.loops[label] }) else {
            throw StallWatchError(
                .invalidConfiguration, "no loop has the label \(label): watch it before you set its threshold"
            )
        }
        for monitor in monitors { monitor.setThreshold(threshold) }
        watchdog.alarm.ring()
    }

    /// Starts the monitor's threads and begins to watch.
    ///
    /// From here to ``stop()`` the monitor keeps itself alive.
    ///
    /// If reports will lack data on this system, the monitor logs one line that says which: see ``capabilities``.
    ///
    /// - Throws: ``StallWatchError/Code/alreadyStarted`` if the monitor has been started,
    ///   ``StallWatchError/Code/stopped`` after ``stop()``, ``StallWatchError/Code/invalidConfiguration`` if another
    ///   monitor of the process tells supervisors already (``Configuration/health``), and
    ///   ``StallWatchError/Code/systemFailure`` if memory or a thread cannot be allocated.
    public func start() throws(StallWatchError) {
        var unused: ControlService?
        // Not under the lock, for which a request may wait that it answers.
        defer { unused?.stop() }
        try state.withLock { state throws(StallWatchError) in
            switch state.phase {
            case .running: throw StallWatchError(.alreadyStarted, "the monitor has already been started: start it once")
            case .stopped:
                throw StallWatchError(.stopped, "the monitor has been stopped: create a new one to start again")
            case .made: break
            }
            // Created here, so that the caller receives its errors; from then on only the watchdog uses it.
            let capturer = try throwing(.systemFailure) { () throws(SystemError) in
                ThreadCapture(engine: try CUnwindEngine())
            }
            let service = try makeControlService()
            state.mayUsePtrace = capturer.methods.contains(.ptrace)
            do throws(StallWatchError) {
                state.phase = .running(try startThreads(capturer))
            } catch {
                unused = service
                healthReporter?.stop()
                reporter.finishSinks()
                state.phase = .stopped
                state.removeSources()
                throw error
            }
            control.withLock { $0 = service }
            startedBy.store(getpid(), ordering: .relaxed)
            state.started = monotonicNow()
            operations.registry.open()
        }
    }

    /// Opens the control socket; returns `nil` if the configuration asks for none.
    private func makeControlService() throws(StallWatchError) -> ControlService? {
        guard let access = configuration.control else { return nil }
        let ended = ControlAnswer(pid: getpid(), error: "the monitor has ended")
        // Weak, because a socket keeps no monitor; a running one keeps itself.
        return try ControlService(directory: access.directory) { [weak self] request in
            self?.answer(request) ?? ended
        } slowAnswer: { [weak self] request in
            self?.slowAnswer(request) ?? ended
        }
    }

    /// Starts the sinks and the threads: first those that the watchdog needs.
    private func startThreads(_ capturer: sending ThreadCapture) throws(StallWatchError) -> Threads {
        let methods = capturer.methods.map(\.rawValue).joined(separator: ", ")
        let unwinder = capturer.unwinder
        try healthReporter?.start(reporter) { [watchdog] in watchdog.readProgress(until: $0) }
        try reporter.startSinks()
        let notice = CapabilityNotice(
            capabilityProbe(mayUsePtrace: capturer.methods.contains(.ptrace)), directory: configuration.reports.path,
            reporter: reporter)
        let reporterThread = try throwing(.systemFailure) { () throws(SystemError) in
            try WorkerThread(name: "stallwatch-rep") { [reporter] in reporter.run() }
        }
        let watchdogThread: WorkerThread
        let transfer = OneShotTransfer(capturer)
        do throws(SystemError) {
            // It keeps this monitor until it is stopped, although nothing else may keep it.
            watchdogThread = try WorkerThread(name: Capabilities.watchdogThread) { [self] in
                CUnwindEngine.requestShortSlice()
                transfer.take().map(watchdog.run)
                reporter.close()
            }
        } catch {
            reporter.close()
            reporterThread.join()
            throw StallWatchError(.systemFailure, error)
        }
        // The watchdog opens the files of the loops' threads, which a process that gives up its user cannot.
        watchdog.follows.wait(until: monotonicNow() &+ Self.longestBegin)
        var facts = [
            "threshold": "\(configuration.threshold)", "captureMethods": methods,
            "unwinder": unwinder.name + (unwinder.reason.map { " (\($0))" } ?? ""),
        ]
        facts["mainActorExecutor"] = MainActorExecutor.custom.map { "\(type(of: $0))" }
        reporter.logNotice("stall monitor started", facts)
        let noticeThread = try? WorkerThread(name: "stallwatch-cap") { [reporter] in
            // Here, and not on the caller: these take the dynamic linker's lock.
            _ = StallContext.calibration
            let unnamed = CalloutNames.learn()
            if !unnamed.isEmpty {
                reporter.logNotice(
                    "stall reports lack callouts: CoreFoundation is stripped",
                    ["functions": unnamed.joined(separator: ", ")])
            }
            notice.give()
        }
        return Threads(
            watchdog: watchdogThread, reporter: reporterThread, notice: notice, noticeThread: noticeThread)
    }

    func capabilityProbe(mayUsePtrace: Bool?) -> CapabilityProbe {
        CapabilityProbe(
            symbolication: configuration.symbolication, unflushed: reporter.unflushed, mayUsePtrace: mayUsePtrace,
            contextProblem: { StallContext.calibration.problem }
        )
    }

    /// Stops watching, removes the observers from the loops and writes the reports that are still waiting.
    ///
    /// The call returns when this is done. It waits up to 5 seconds for file sinks and 1 second for others. On one of
    /// the monitor's own threads, as in a sink, it does not wait for that thread. A stall that still lasts is reported
    /// as `abandoned`, but the turn in which the loop itself makes the call ends there. Further calls do nothing, and so
    /// does one in a child of fork(2), which has none of the monitor's threads.
    public func stop() {
        // Takes no lock: in a child, a thread that is gone may hold it, and Swift's mutexes know threads by their ids.
        let process = startedBy.load(ordering: .relaxed)
        guard process == 0 || process == getpid() else { return }
        let phase = state.withLock { state in
            if case .running = state.phase { state.stopped = monotonicNow() }
            return exchange(&state.phase, with: .stopped)
        }
        // After start(), which may have made it meanwhile, and without the lock, for which a request may wait.
        control.withLock { $0.take() }?.stop()
        switch phase {
        case .stopped:
            return
        case .made:
            reporter.discard()
        case .running(let threads):
            // First: a supervisor learns at once that the stop is on purpose.
            healthReporter?.stop()
            threads.noticeThread?.finish(until: monotonicNow() &+ SinkSet.storeTimeLimit)
            operations.stop()
            // A sink may call stop(): neither thread may wait for that sink, or both would wait forever.
            reporter.willStopOnCurrentThread()
            watchdog.stop(by: clinux_gettid())
            for thread in [threads.watchdog, threads.reporter] { thread.finish(until: .max) }
            writeStatistics()
            threads.notice.withdraw()
        }
        // The watchdog removes the sources that it watches. This covers the loops that it has not seen yet.
        state.withLock { $0.removeSources() }
    }
}
