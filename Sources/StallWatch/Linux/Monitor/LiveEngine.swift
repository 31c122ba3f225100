import CLinux
import Glibc
import StackCapture
import StallReports
import LinuxSupport
import Synchronization
import StallSymbols

/// The engine of a monitor on Linux; while it runs its watchdog keeps it, until ``stop()``.
final class LiveEngine: MonitorEngine {
    let configuration: StallMonitor.Configuration
    let environment: MonitorEnvironment

    enum Phase {
        case made
        case running(Threads)
        case stopped
    }
    struct Threads {
        let watchdog: WorkerThread
        let reporter: WorkerThread
        /// Posted when the log says what reports lack and a proof has found; `nil` if the system has refused the thread.
        let notice: LinuxSupport.Semaphore?
    }
    struct EndedWatch: Sendable {
        weak var entry: LoopEntry?
    }
    struct State {
        var phase = Phase.made
        /// By label.
        var loops: [String: LoopEntry] = [:]
        /// The last watch of each label that has ended, while the program keeps it.
        var ended: [String: EndedWatch] = [:]
        /// The number of ended watches above which those that the program has dropped are removed.
        private var maximumEnded = Self.leastEnded
        private static let leastEnded = 64
        /// The labels of the loops with an identity.
        var labels: [ObjectIdentifier: String] = [:]
        /// When the monitor started and stopped, in monotonic nanoseconds.
        var started: UInt64?
        var stopped: UInt64?
        /// What the start and proofs have shown of captures; empty before the start.
        var captures: CaptureProbe.Outcomes = [:]

        @discardableResult
        func removeSources() -> [LoopEntry] {
            for loop in loops.values { loop.removeSources() }
            return Array(loops.values)
        }

        /// Returns the labels that are still in use once those that the program has dropped are removed; `nil` before.
        mutating func addEnded(_ entry: LoopEntry) -> Set<String>? {
            ended[entry.label] = EndedWatch(entry: entry)
            guard ended.count > maximumEnded else { return nil }
            ended = ended.filter { $0.value.entry != nil }
            maximumEnded = max(2 * ended.count, Self.leastEnded)
            return Set(loops.keys).union(ended.keys)
        }
    }
    let state = Mutex(State())
    let watchdog: Watchdog
    let reporter: Reporter
    let isProving = Atomic<Bool>(false)
    let operations: OperationWatch
    let healthSource: HealthSource
    let statisticsFiles: [FixedFile]
    let reportDirectory: String?
    /// Tells supervisors; `nil` if the configuration names none.
    private let healthReporter: HealthReporter?
    private let control = Mutex<ControlService?>(nil)
    /// Opened with the monitor: the program may change its root before it starts it.
    private let controlDirectory: FixedDirectory?
    /// The number of the process that has started the monitor, or begins to; 0 for none.
    private let startedBy = Atomic<UInt32>(0)
    var isInherited: Bool {
        let process = startedBy.load(ordering: .relaxed)
        return process != 0 && clinux_is_forked_from(process)
    }
    let latestStalls = LatestStalls()
    /// One of its own for lists of tasks, so that no report waits for them.
    let taskRedaction: Redaction?

    /// Creates an engine of a checked configuration; throws if an output or the health file cannot be written.
    init(
        _ configuration: StallMonitor.Configuration, environment: MonitorEnvironment
    ) throws(StallWatchError) {
        let configuration = configuration.withFixedPlaces
        self.configuration = configuration
        self.environment = environment
        taskRedaction = configuration.privacy.redact.map { Redaction($0) }
        (statisticsFiles, reportDirectory) = (configuration.statisticsFiles, configuration.directory)
        controlDirectory = configuration.control.map { FileCreation.directory(at: $0.directory) }
        var settings = Reporter.Settings {
            ReportBuilder(
                process: .current(), metadata: configuration.privacy.metadata, inApp: configuration.symbols.inApp,
                symbolication: .inProcess(configuration.symbols.lookup, inApp: configuration.symbols.inApp),
                missingContextReason: StallContext.calibration.problem
            )
        }
        settings.reportsPerMinute = configuration.repeats.maximumReportsPerMinute
        settings.reportsEveryRepeat = configuration.repeats.reportsEveryRepeat
        settings.pathStyle = configuration.privacy.pathStyle
        settings.redact = configuration.privacy.redact
        settings.escalation = configuration.escalation?.action
        settings.terminationLog = configuration.terminationLog.map { TerminationLog($0) }
        let health = HealthSource(interval: configuration.health?.recordInterval)
        healthSource = health
        let healthReporter = try configuration.health.map { output throws(StallWatchError) in
            try HealthReporter(output, source: health)
        }
        self.healthReporter = healthReporter
        let latest = configuration.control == nil ? nil : latestStalls
        settings.storeState = { report in
            health.store(report)
            latest?.store(report)
            healthReporter?.wake()
        }
        let options = configuration.watchdogOptions
        reporter = try Reporter(settings: settings, sinks: configuration.sinks)
        let intervals = reporter.intervalLength.map(TurnIntervals.init)
        let (alarm, suppressed) = (WatchdogAlarm(), SuppressionCounter())
        operations = OperationWatch(
            ignoresDebugged: options.ignoresDebugged, suppressed: suppressed, ring: alarm.ring, submit: reporter.submit)
        watchdog = Watchdog(
            options: options, suppressed: suppressed, alarm: alarm, submit: reporter.submit,
            passed: { [reporter] loops, now, isLast in
                if let intervals { reporter.submit(intervals.pass(loops, at: now, isLast: isLast)) }
            }, serve: operations.findOverdue, operations: operations.registry.read, tasks: PoolTasks.ofThisProcess)
    }

    // A running monitor is kept by its watchdog, so this never waits for a thread.
    deinit {
        stop(inTurnOf: nil)
    }

    func watch(
        _ loop: WatchedLoop, threshold: Duration, isServed: Bool
    ) throws(StallWatchError) -> any EngineLoop {
        let entry = try state.withLock { state throws(StallWatchError) in
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
            if let label = loop.identity.flatMap({ state.labels[$0] }) {
                throw StallWatchError(
                    .alreadyWatched, "the loop \(loop.label) is already watched, as \(label): watch it once"
                )
            }
            let isRunning = if case .running = state.phase { true } else { false }
            // Before anything asks for its run loop.
            guard !loop.mayTakeDescriptors || hasDescriptors(for: WatchedLoop.descriptors(isRunning: isRunning)) else {
                throw StallWatchError(
                    .systemFailure,
                    "\(loop.label) cannot be watched with so few free descriptors: raise the limit on open files (ulimit -n)"
                )
            }
            let monitors = try loop.makeMonitors(
                threshold: nanoseconds(threshold), alarm: watchdog.alarm, isServed: isServed)
            let counted = reporter.counts.byLoop[loop.label]
            state.ended.removeValue(forKey: loop.label)?.entry?.leaveCount(at: counted)
            let entry = LoopEntry(label: loop.label, identity: loop.identity, monitors: monitors, before: counted)
            state.loops[loop.label] = entry
            if let identity = loop.identity { state.labels[identity] = loop.label }
            if isRunning { entry.begin() }
            watchdog.add(monitors)
            return entry
        }
        LoopEntry.settle([entry])
        return LiveLoop(engine: self, entry: entry)
    }

    func unwatch(_ entry: LoopEntry) {
        let isWatched = state.withLock { state in
            guard state.loops[entry.label] === entry else { return false }
            state.loops[entry.label] = nil
            if let labels = state.addEnded(entry) { reporter.counts.keepLoops(labels) }
            if let identity = entry.identity { state.labels[identity] = nil }
            return true
        }
        guard isWatched else { return }
        entry.markEnded()
        // The watchdog removes the sources when it runs; a monitor that never started has no watchdog.
        entry.removeSources()
        watchdog.remove(entry.monitors)
        LoopEntry.settle([entry])
    }

    func start() throws(StallWatchError) {
        // Before the first lock, also in memory: a child that is forked meanwhile has it held for good.
        startedBy.store(clinux_process_number(), ordering: .sequentiallyConsistent)
        try state.withLock { state throws(StallWatchError) in
            switch state.phase {
            case .running: throw .startedTwice
            case .stopped: throw .startedAfterStop
            case .made: break
            }
            // Created here, so that the caller receives its errors; from then on only the watchdog uses it.
            let capturer = try throwing(.systemFailure) { () throws(SystemError) in
                ThreadCapture(engine: try CUnwindEngine())
            }
            state.captures = capturer.outcomes
            for loop in state.loops.values { loop.begin() }
            do throws(StallWatchError) {
                state.phase = .running(try startThreads(Array(state.loops.values), capturer, state.captures))
            } catch {
                healthReporter?.stop()
                reporter.finishSinks()
                state.phase = .stopped
                state.removeSources()
                throw error
            }
            state.started = monotonicNow()
            operations.registry.open()
        }
        removeLeftoversOfStatistics()
        // Not under the lock: its file system may not answer for some time.
        let service = makeControlService()
        control.withLock { $0 = service }
        // Who has stopped the monitor meanwhile may not have seen it.
        if !isRunning { control.withLock { $0.take() }?.close() }
    }

    /// Opens the control socket; returns `nil` if the configuration asks for none, or if it cannot be opened.
    private func makeControlService() -> ControlService? {
        guard let controlDirectory else { return nil }
        let ended = ControlAnswer(pid: getpid(), error: "the monitor has ended")
        let refuse = { @Sendable [reporter] (error: any Error) in
            reporter.announce("the monitor runs without its control socket: \(error)")
        }
        // Weak, because a socket keeps no monitor; a running one keeps itself.
        do throws(StallWatchError) {
            return try ControlService(directory: controlDirectory) { [weak self] request in
                self?.answer(request) ?? ended
            } slowAnswer: { [weak self] request in
                self?.slowAnswer(request) ?? ended
            } whenRefused: {
                refuse($0)
            }
        } catch {
            refuse(error)
            return nil
        }
    }

    /// Starts the sinks and the threads: first those that the watchdog needs.
    private func startThreads(
        _ loops: [LoopEntry], _ capturer: sending ThreadCapture, _ captures: CaptureProbe.Outcomes
    ) throws(StallWatchError) -> Threads {
        let methods = capturer.methods.map(\.rawValue).joined(separator: ", ")
        let unwinder = capturer.unwinder
        do throws(StallWatchError) {
            try healthReporter?.start(reporter) { [watchdog] in watchdog.readProgress(until: $0) }
        } catch  where error.code != .invalidConfiguration {
            reporter.announce("the monitor runs without telling supervisors: \(error)")
        }
        try reporter.startSinks()
        let probe = capabilityProbe(captures)
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
        var facts = [
            "captureMethods": methods, "unwinder": unwinder.name + (unwinder.reason.map { " (\($0))" } ?? ""),
        ]
        facts["mainActorExecutor"] = MainActorExecutor.custom.map { "\(type(of: $0))" }
        reporter.logNotice(Self.startSentence(loops, directory: reportDirectory), facts)
        environment.announce(to: reporter)
        let (notice, proves) = (LinuxSupport.Semaphore(), configuration.detection.provesAtStart)
        // Here, and not on the caller: these take the dynamic linker's lock.
        let begins = JobThread.memory.add { [weak self, reporter] in
            _ = StallContext.calibration
            RunLoopLayout.learn()
            QueueItems.learn()
            let unnamed = CalloutNames.learn()
            if !unnamed.isEmpty {
                reporter.logNotice(
                    "stall reports lack callouts: CoreFoundation is stripped",
                    ["functions": unnamed.joined(separator: ", ")])
            }
            // Last: captures need what others have added meanwhile.
            JobThread.memory.add { [weak self] in
                reporter.logDegradation(probe.known)
                let end = { @Sendable [weak self] in
                    // Of a monitor that was stopped meanwhile nothing is wrong.
                    if proves, let proof = self?.prove(), self?.isRunning == true {
                        self?.healthSource.store(proof)
                        self?.healthReporter?.wake()
                        reporter.announce("proof: \(proof.summary)")
                    }
                    notice.post()
                }
                // A proof would keep other jobs waiting for a second.
                guard proves, (try? WorkerThread(name: "stallwatch-say", body: end)) != nil else { return end() }
            }
        }
        return Threads(
            watchdog: watchdogThread, reporter: reporterThread, notice: begins ? notice : nil)
    }

    /// Says what is watched: `stall monitor started: main over 250ms, tasks over 1s; reports go to /srv/notes/stalls`.
    static func startSentence(_ loops: [LoopEntry], directory: String?) -> String {
        let watched = loops.sorted { $0.label < $1.label }.map { loop in
            "\(loop.label) over \(DurationText.text(.nanoseconds(Int64(clamping: loop.monitors[0].threshold))))"
        }
        return "stall monitor started: " + (watched.isEmpty ? "no loop yet" : watched.joined(separator: ", "))
            + (directory.map { "; reports go to \($0)" } ?? "")
    }

    func stop(inTurnOf thread: Int32?) {
        // Takes no lock: in a child, a thread that is gone may hold it, and Swift's mutexes know threads by their ids.
        let process = startedBy.load(ordering: .relaxed)
        guard process == 0 || process == clinux_process_number() else { return }
        let phase = state.withLock { state in
            if case .running = state.phase { state.stopped = monotonicNow() }
            return exchange(&state.phase, with: .stopped)
        }
        // Without the lock, for which a request may wait. start() closes one that it makes later.
        let control = control.withLock { $0.take() }
        control?.close()
        switch phase {
        case .stopped:
            return
        case .made:
            reporter.discard()
        case .running(let threads):
            // Each may wait for the app, a client or a file system that never answers: all are told first, and one limit
            // is everyone's.
            let limit = reporter.limit
            limit.begin()
            // First: a supervisor learns at once that the stop is on purpose.
            healthReporter?.close()
            operations.stop(until: limit.ofInspections)
            // A sink may call stop(): neither thread may wait for that sink, or both would wait forever.
            reporter.willStopOnCurrentThread()
            watchdog.stop(by: thread ?? clinux_gettid())
            threads.watchdog.finish(until: limit.ofReports)
            // The watchdog does this, too, unless a capture holds it up.
            reporter.close()
            threads.reporter.finish(until: limit.ofStores)
            _ = threads.notice?.wait(until: limit.ofOthers)
            healthReporter?.stop(until: limit.ofOthers)
            control?.finish(until: limit.ofOthers)
            writeStatistics(until: limit.ofStores)
        }
        // The watchdog removes the sources that it watches. This covers the loops that it has not seen yet.
        LoopEntry.settle(state.withLock { $0.removeSources() })
    }

    func stopOnThread() async {
        await withCheckedContinuation { continuation in
            let end = { @Sendable [self] in
                stop(inTurnOf: nil)
                continuation.resume()
            }
            guard let thread = try? WorkerThread(name: "stallwatch-stop", body: end) else { return end() }
            thread.detach()
        }
    }

    func beginPause() { watchdog.pauses.begin() }

    func endPause() { watchdog.pauses.end(at: monotonicNow()) }

    func beginOperation(_ name: String, _ limit: Duration, _ context: StallContext?) -> Int {
        operations.begin(name, limit, context)
    }

    func endOperation(_ operation: Int) { operations.end(operation) }

    /// The longest time that ``checkHealth()`` waits for the watchdog, in nanoseconds.
    private static let healthAnswerLimit: UInt64 = 100_000_000

    func checkHealth() -> HealthRecord {
        guard case .running = state.withLock({ $0.phase }) else { return healthSource.stoppedRecord() }
        guard let reading = watchdog.readProgress(until: monotonicNow() &+ Self.healthAnswerLimit) else {
            return healthSource.lastRecord()
        }
        return healthSource.record(of: reading)
    }
}
