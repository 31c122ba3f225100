import LinuxSupport
@_exported public import StallReports
import Synchronization

extension StallMonitor {
    /// Runs `body` without watching any loop.
    ///
    /// No turn can become a stall while `body` runs. Turns that are still in progress afterwards are measured from the
    /// end of the pause. Pauses nest. A pause costs two atomic operations.
    ///
    /// - Parameter body: The work that may take long.
    /// - Returns: The result of `body`.
    /// - Throws: The error that `body` throws.
    public func paused<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        watchdog.pauses.begin()
        defer { watchdog.pauses.end(at: monotonicNow()) }
        return try body()
    }

    /// Begins a pause, like ``paused(_:)``, for code that a closure does not fit.
    ///
    /// The pause ends with ``IgnoreScope/end()``, or when the scope is destroyed.
    ///
    /// - Returns: The scope of the pause.
    public func ignoreScope() -> IgnoreScope {
        watchdog.pauses.begin()
        return IgnoreScope(pauses: watchdog.pauses)
    }

    /// A pause during which no loop is watched.
    public struct IgnoreScope: ~Copyable, Sendable {
        fileprivate let pauses: PauseState

        /// Ends the pause.
        public consuming func end() {}

        deinit {
            pauses.end(at: monotonicNow())
        }
    }

    /// Begins an operation of the current task; returns its place, for ``end(_:)``.
    func begin(_ name: String, _ limit: Duration, _ context: StallContext?) -> Int {
        operations.begin(name, limit, context)
    }

    func end(_ operation: Int) { operations.end(operation) }

    /// The longest time that ``health`` waits for the watchdog, in nanoseconds.
    private static let healthAnswerLimit: UInt64 = 100_000_000

    /// Whether the watched loops make progress, as the watchdog finds it now.
    ///
    /// An access wakes the watchdog and waits for it: for less than a millisecond as a rule, for 100 ms at most. If the
    /// watchdog does not answer, the result is the last record, whose time is old. Before ``start()`` and after
    /// ``stop()`` the state is `stopped`. The watched threads pay nothing.
    public var health: HealthRecord {
        guard case .running = state.withLock({ $0.phase }) else { return healthSource.stoppedRecord() }
        guard let reading = watchdog.readProgress(until: monotonicNow() &+ Self.healthAnswerLimit) else {
            return healthSource.lastRecord()
        }
        return healthSource.record(of: reading)
    }

    /// The features that work for this monitor in this process, found by trying them.
    ///
    /// Capture methods are tried once per process, on threads created for that; all other features at each access. An
    /// access takes some milliseconds on the calling thread, and less than a second if the system does not respond. It
    /// loads libdw, unless the configuration asks for no lines. It does not affect the app's threads.
    ///
    /// ```swift
    /// for feature in monitor.capabilities.missing {
    ///     print(feature.name.rawValue, feature.loss ?? "", feature.remedies)
    /// }
    /// ```
    public var capabilities: Capabilities {
        capabilityProbe(mayUsePtrace: state.withLock { $0.mayUsePtrace }).capabilities(loadsLibrary: true)
    }
}

extension StallMonitor.Configuration {
    /// Converts a threshold to nanoseconds, or throws if it is out of range.
    static func checked(_ threshold: StallThreshold) throws(StallWatchError) -> UInt64 {
        try check(threshold)
        return nanoseconds(threshold.ceiling)
    }

    var watchdogOptions: WatchdogOptions {
        WatchdogOptions(
            capturesAllThreads: captureAllThreads, ignoresDebugged: whenDebugged == .ignore,
            saturationThreshold: saturationThreshold.map(nanoseconds),
            modeRule: modeStarvation.map { .init(limit: nanoseconds($0.limit), modalModes: $0.modalModes) },
            escalationMultiple: escalation?.multiple
        )
    }

    /// All sinks: the directory, the log, the hooks and the additional ones.
    var allSinks: [SinkFactory] {
        var all: [ReportSink] = []
        if let path = reports.path { all.append(.directory(path, quota: reports.quota)) }
        if let logger { all.append(.log(logger)) }
        var hooks = HookSink(began: onStallBegan, ended: onStallEnded)
        if case .call(let body) = escalation?.action { hooks.escalated = body }
        let called: [SinkFactory] = hooks.isEmpty ? [] : [{ [hooks] _, _ in hooks.description }]
        return all.map { $0.factory(in: reports.path) } + called + sinks.map { $0.factory(in: reports.path) }
    }
}
