@_exported public import StallReports

#if ServiceLifecycle
    public import ServiceLifecycle
#endif
#if !os(Linux) || STALLWATCH_INERT
    import Logging
#endif

#if os(Linux) && !STALLWATCH_INERT && !canImport(StackCapture)
    #error("The package was set up for another platform. To compile for Linux elsewhere, set STALLWATCH_INERT=0.")
#endif

/// Watches event loops and reports each turn that takes too long, with the stack of the loop's thread.
///
/// ```swift
/// let monitor = try StallMonitor(.init(threshold: .milliseconds(250), outputs: [.directory("stalls")]))
/// try monitor.watch(.main)
/// try monitor.start()
/// ```
///
/// A run loop's thread pays for two observers per turn: a few clock reads and atomic stores, with no lock and no
/// allocation. It makes a system call only to learn a new thread's id, or to wake the watchdog: for the first turn
/// after all loops have waited, and when a stall ends. All other work runs on threads that belong to the monitor.
///
/// A monitor is used once: create it, start it, stop it. While it runs it keeps itself, until ``stop()``: the program
/// needs no reference to it. All of its methods may be called on any thread. In a child of fork(2), a monitor that the
/// parent has started does nothing, and has no numbers: create one there.
///
/// The environment can change a monitor without a new release of the program. With `STALLWATCH=off` it watches nothing and
/// writes no report; supervisors are still told that the program is ready and alive. `STALLWATCH_THRESHOLD`, such as
/// `100ms`, replaces the threshold of the configuration, and `STALLWATCH_REPORTS` the path of its first directory.
/// ``start()`` logs one line about it. A set-user-ID program ignores these variables.
///
/// On other platforms than Linux a monitor checks its settings and does nothing else.
public final class StallMonitor: Sendable {
    /// Whether monitors find stalls on this platform: `true` on Linux.
    ///
    /// Elsewhere the library has the same interface, so that the program builds there, too; its monitors do nothing.
    public static var isSupported: Bool {
        #if os(Linux) && !STALLWATCH_INERT
            true
        #else
            false
        #endif
    }
    /// The configuration of the monitor, with what the environment changes about it.
    public let configuration: Configuration
    private let ownEngine: any MonitorEngine
    /// In a child of fork(2) of the process that has started the monitor, an engine that does nothing: a thread that
    /// the child does not have may hold each lock of its own.
    var engine: any MonitorEngine {
        if ownEngine.isInherited { return IdleEngine(isOfParent: true) {} }
        return ownEngine
    }

    /// Creates a monitor that does not watch any loop yet.
    ///
    /// It creates the report directory and checks that it can write files there, and that it can write the health file.
    /// What a file system has not answered after two seconds is tried again later.
    ///
    /// - Parameter configuration: The monitor's settings.
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` for a value out of its range, and
    ///   ``StallWatchError/Code/unwritableReports`` if reports cannot be written.
    public convenience init(_ configuration: Configuration = Configuration()) throws(StallWatchError) {
        #if os(Linux) && !STALLWATCH_INERT
            try self.init(configuration, environment: .current)
        #else
            try configuration.check()
            let notice = "StallWatch supports Linux only: on this platform no stalls are reported"
            let logger = configuration.logger ?? Logger(label: "StallWatch")
            self.init(configuration, engine: IdleEngine { logger.notice("\(notice)") })
        #endif
    }

    init(_ configuration: Configuration, engine: any MonitorEngine) {
        self.configuration = configuration
        ownEngine = engine
    }

    /// Adds a loop to watch, from its next turn on.
    ///
    /// ```swift
    /// let loop = try monitor.watch(.queue(storage, label: "storage"), threshold: .milliseconds(100))
    /// ```
    ///
    /// It may be called before ``start()`` and while the monitor runs.
    ///
    /// - Parameters:
    ///   - loop: The loop to watch.
    ///   - threshold: The duration from which a turn is a stall, or the longest time until a heartbeat runs: 5 ms to 24
    ///     hours. `nil` for the threshold of the configuration.
    /// - Returns: The watch, to change or end it. The loop is watched whether or not the result is kept.
    /// - Throws: ``StallWatchError/Code/alreadyWatched`` if this monitor already watches the loop or another one with
    ///   its label, or if another monitor watches the same ``LoopProbe``; ``StallWatchError/Code/invalidConfiguration``
    ///   for a threshold out of range; ``StallWatchError/Code/stopped`` after ``stop()``; and
    ///   ``StallWatchError/Code/systemFailure`` if the loop cannot be observed.
    @discardableResult
    public func watch(_ loop: WatchedLoop, threshold: Duration? = nil) throws(StallWatchError) -> LoopWatch {
        try watch(loop, threshold: threshold, isServed: false)
    }

    /// Adds a loop to watch, whose first heartbeat counts if the loop is known to run items (`isServed`).
    @discardableResult
    package func watch(
        _ loop: WatchedLoop, threshold: Duration? = nil, isServed: Bool
    ) throws(StallWatchError) -> LoopWatch {
        let threshold = threshold ?? configuration.threshold
        try Configuration.check(threshold)
        return LoopWatch(
            label: loop.label, loop: try engine.watch(loop, threshold: threshold, isServed: isServed))
    }

    /// Waits until every stall that the given loops have had so far is with the outputs; returns `false` at the deadline,
    /// in monotonic nanoseconds.
    package func settle(_ labels: Set<String>, until deadline: UInt64) -> Bool {
        engine.settle(labels, until: deadline)
    }

    /// Starts the monitor's threads and begins to watch.
    ///
    /// From here to ``stop()`` the monitor keeps itself alive.
    ///
    /// It logs one line about what it watches, over which thresholds, and the absolute path of the report directory; and
    /// another one if it shows that reports will lack data: see ``checkCapabilities()``. Both have the level info.
    ///
    /// - Throws: ``StallWatchError/Code/alreadyStarted`` if the monitor has been started,
    ///   ``StallWatchError/Code/stopped`` after ``stop()``, ``StallWatchError/Code/invalidConfiguration`` if another
    ///   monitor of the process tells supervisors already (``Configuration/health``), and
    ///   ``StallWatchError/Code/systemFailure`` if memory or a thread cannot be allocated.
    public func start() throws(StallWatchError) { try engine.start() }

    /// Stops watching, removes the observers from the loops and writes the reports that are still waiting.
    ///
    /// The call returns when this is done, after a second at the latest, whatever the app's closures, clients and file
    /// systems do: a report whose names are not found by then has none. Only for file outputs it waits up to 5 seconds. On
    /// one of the monitor's own threads, as in an output, it does not wait for that thread. A stall that still lasts is reported
    /// as `abandoned`, but the turn in which the loop itself makes the call ends there. Further calls do nothing, and so
    /// does one in a child of fork(2), which has none of the monitor's threads.
    public func stop() { engine.stop(inTurnOf: nil) }

    /// Stops like ``stop()``, for a thread that waits for it.
    package func stop(inTurnOf thread: Int32) { engine.stop(inTurnOf: thread) }

    /// The counts of the monitor's work so far, and the numbers of its loops.
    ///
    /// Reading them costs the monitored threads nothing.
    public var statistics: MonitorStatistics { engine.statistics }

    /// Makes a sequence of the reports that outputs receive from now on: see ``ReportOutput``.
    ///
    /// ```swift
    /// for await report in monitor.makeReports() { print(report.summary) }
    /// ```
    ///
    /// The sequence ends when the monitor stops. It buffers 64 reports. If its reader is slower, the oldest are dropped and
    /// counted in ``MonitorStatistics/reportsDropped``. Reading costs the monitored threads nothing.
    ///
    /// - Returns: The sequence, which is independent of others.
    public func makeReports() -> AsyncStream<StallReport> { engine.makeReports() }

    /// Asks the watchdog whether the watched loops make progress.
    ///
    /// It wakes the watchdog and waits for it: for less than a millisecond as a rule, for 100 ms at most. The watched
    /// threads pay nothing.
    ///
    /// - Returns: The answer. If the watchdog does not answer, it is the last record, whose time is old. Before
    ///   ``start()`` and after ``stop()`` the state is `stopped`, and with `STALLWATCH=off` it is `off`.
    public func checkHealth() -> HealthRecord { engine.checkHealth() }

    /// Finds the features that work for this monitor in this process, by trying them.
    ///
    /// ```swift
    /// for feature in monitor.checkCapabilities().missing {
    ///     print(feature.name.rawValue, feature.loss ?? "", feature.remedies)
    /// }
    /// ```
    ///
    /// Of a monitor that runs, capture methods are what its start and ``prove()`` have shown; else they are tried once per
    /// process, on threads created for that. All other features are tried at each call. A call
    /// takes some milliseconds, and less than a second if the system does not respond. It loads libdw, unless the
    /// configuration asks for no lines. It does not affect the app's threads, but runs one empty task.
    ///
    /// - Returns: The features; none where monitors do nothing.
    public func checkCapabilities() -> Capabilities { engine.checkCapabilities() }

    /// Proves that the monitor works in this process, by stalls that it causes itself.
    ///
    /// A loop of the monitor's own sleeps, waits for a lock, computes and reads a pipe, each time for 160 ms with a threshold of
    /// 100 ms. The watchdog, captures and rules are those of the app's loops; no output, number or hook gets the reports.
    ///
    /// A call takes a second, under a CPU quota more, and 15 seconds at the very most: do not make it on a watched loop or in an
    /// output. It uses a CPU for some 300 ms, which a quota takes from the watched threads; nothing else does.
    ///
    /// - Returns: What was found. Of a monitor that does not run, is paused or proves itself already, there is one fault, and no
    ///   stall.
    public func prove() -> MonitorProof { engine.prove() }
}

#if ServiceLifecycle
    extension StallMonitor: Service {
        /// Runs the monitor until the service group shuts down gracefully or the task is cancelled.
        ///
        /// It starts the monitor unless the monitor is already running. At the end it stops the monitor: a stall that
        /// still lasts is reported as `abandoned`, and every output receives the reports that wait for it.
        ///
        /// - Throws: The errors of ``start()``, except ``StallWatchError/Code/alreadyStarted``.
        public func run() async throws {
            do {
                try start()
            } catch {
                // If the app started the monitor before the group, that was to see the stalls of its own start. A
                // condition of the `catch` instead crashes the compiler of Swift 6.2.
                guard error.code == .alreadyStarted else { throw error }
            }
            // Cancellation and graceful shutdown both end the wait.
            try? await gracefulShutdown()
            await engine.stopOnThread()
        }
    }
#endif

/// The watch of a loop by a monitor.
///
/// ```swift
/// let loop = try monitor.watch(.queue(storage, label: "storage"), threshold: .milliseconds(100))
/// try loop.setThreshold(.milliseconds(50))
/// print(loop.statistics.stalls)
/// loop.stop()
/// ```
///
/// The loop is watched whether or not the program keeps this value. All methods may be called on any thread.
public struct LoopWatch: Sendable {
    /// The loop's name in reports.
    public let label: String
    let loop: any EngineLoop

    /// Changes the threshold, from the watchdog's next poll on.
    ///
    /// - Parameter threshold: The duration from which a turn is a stall: 5 ms to 24 hours.
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` if the threshold is out of range.
    public func setThreshold(_ threshold: Duration) throws(StallWatchError) {
        try StallMonitor.Configuration.check(threshold)
        loop.setThreshold(threshold)
    }

    /// The numbers of the loop since the monitor watches it, or until the end of the watch.
    ///
    /// Reading them costs the loop nothing.
    public var statistics: LoopStatistics { loop.statistics }

    /// Stops watching the loop.
    ///
    /// If the loop is in a stall, the stall is reported as `abandoned`. Further calls do nothing.
    public func stop() { loop.stop() }
}
