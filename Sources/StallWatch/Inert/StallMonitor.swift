internal import Foundation
internal import Logging
@_exported public import StallReports

#if os(Linux) && !STALLWATCH_INERT
    #error("The package was set up for another platform. To compile for Linux elsewhere, set STALLWATCH_INERT=0.")
#endif

/// A monitor that does nothing, because StallWatch supports Linux only.
///
/// It has the interface of the monitor on Linux, so that a program builds and runs here, too. It checks its settings, and
/// throws for those that are out of range. It watches no loop, starts no thread and writes no file.
public final class StallMonitor: Sendable {
    /// Whether monitors find stalls on this platform: `false`.
    public static let isSupported = false
    /// The configuration of the monitor.
    public let configuration: Configuration
    private let phase = MonitorPhase()
    private let streams = ReportStreams()

    /// Creates a monitor that does nothing.
    ///
    /// - Parameter configuration: The monitor's settings.
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` for a value out of its range.
    public init(_ configuration: Configuration = Configuration()) throws(StallWatchError) {
        self.configuration = configuration
        try configuration.check()
    }

    deinit {
        stop()
    }

    /// Checks the loop's threshold, and does nothing else.
    ///
    /// - Parameter loop: The loop.
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` for a threshold out of range.
    public func watch(_ loop: WatchedLoop) throws(StallWatchError) {
        if let threshold = loop.threshold { try Configuration.check(threshold) }
    }

    /// Does nothing.
    ///
    /// - Parameter label: A label.
    public func unwatch(_ label: String) {}

    /// Checks the threshold, and does nothing else.
    ///
    /// - Parameters:
    ///   - threshold: A threshold: 5 ms to 24 hours.
    ///   - label: A label.
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` if the threshold is out of range.
    public func setThreshold(_ threshold: StallThreshold, of label: String) throws(StallWatchError) {
        try Configuration.check(threshold)
    }

    /// Logs one line: that no stall is reported on this platform.
    ///
    /// The line goes to the configuration's logger, or to the log `StallWatch` if there is none, at level notice.
    ///
    /// - Throws: ``StallWatchError/Code/alreadyStarted`` if the monitor has been started, and
    ///   ``StallWatchError/Code/stopped`` after ``stop()``.
    public func start() throws(StallWatchError) {
        try phase.start()
        let logger = configuration.logger ?? Logger(label: "StallWatch")
        logger.notice("StallWatch supports Linux only: on this platform no stalls are reported")
    }

    /// Ends the sequences of ``reports``.
    public func stop() {
        phase.stop()
        streams.finish()
    }

    /// An empty sequence, which ends when the monitor stops.
    public var reports: AsyncStream<StallReport> { streams.stream() }

    /// The statistics of a monitor that has seen nothing.
    public var statistics: MonitorStatistics { MonitorStatistics() }

    /// The capabilities without a feature, because none was tried.
    public var capabilities: Capabilities {
        Capabilities(environment: Capabilities.Environment(pid: getpid()), features: [])
    }

    /// A record in the state `stopped`, without loops.
    public var health: HealthRecord {
        let now = Timestamp(microsecondsSince1970: Int64(Date().timeIntervalSince1970 * 1_000_000))
        return HealthRecord(
            state: .stopped, checkedAt: now, checkedAtMonotonicMilliseconds: 0, progressedAt: now,
            process: HealthRecord.Process(pid: getpid()), loops: [])
    }

    /// Runs `body`.
    ///
    /// - Parameter body: The work that may take long.
    /// - Returns: The result of `body`.
    /// - Throws: The error that `body` throws.
    public func paused<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        try body()
    }

    func begin(_ name: String, _ limit: Duration, _ context: StallContext?) {}

    func end(_ operation: Void) {}

    func stopOnThread() async { stop() }

    /// Returns a scope that does nothing.
    ///
    /// - Returns: The scope.
    public func ignoreScope() -> IgnoreScope { IgnoreScope() }

    /// A pause of a monitor that does nothing.
    public struct IgnoreScope: ~Copyable, Sendable {
        /// Does nothing.
        public consuming func end() {}
    }
}

/// Whether a monitor has been started or stopped.
///
/// `@unchecked Sendable`: the lock guards the variable. Mutex would need macOS 15.
final class MonitorPhase: @unchecked Sendable {
    private enum Phase { case made, started, stopped }

    private let lock = NSLock()
    private var phase = Phase.made

    /// Starts, or throws if that is too late.
    func start() throws(StallWatchError) {
        let before = lock.withLock {
            defer { if phase == .made { phase = .started } }
            return phase
        }
        switch before {
        case .made: return
        case .started:
            throw StallWatchError(.alreadyStarted, "the monitor has already been started: start it once")
        case .stopped:
            throw StallWatchError(.stopped, "the monitor has been stopped: create a new one to start again")
        }
    }

    func stop() { lock.withLock { phase = .stopped } }
}

/// A probe that does nothing, because StallWatch supports Linux only.
public final class LoopProbe: Sendable {
    /// The loop's name in reports.
    public let label: String

    /// Creates a probe.
    ///
    /// - Parameter label: The loop's name in reports.
    public init(label: String) {
        self.label = label
    }

    /// Does nothing.
    public func beginTurn() {}

    /// Does nothing.
    public func endTurn() {}
}

/// Calls a function that does not suspend, with a context for the reports of its stalls.
///
/// Off Linux there are no reports: the context is only the value of ``StallContext/current`` meanwhile.
///
/// - Parameters:
///   - context: The context.
///   - body: The function.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
public func withStallContext<Result>(_ context: StallContext, body: () throws -> Result) rethrows -> Result {
    try StallContext.$current.withValue(context, operation: body)
}

/// Implements `stallwatch_push_context` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_push_context")
public func stallwatchPushContext(
    _ label: UnsafePointer<CChar>?, _ traceID: UnsafePointer<CChar>?, _ spanID: UnsafePointer<CChar>?
) {}

/// Implements `stallwatch_pop_context` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_pop_context")
public func stallwatchPopContext() {}
