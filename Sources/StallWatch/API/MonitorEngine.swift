internal import Foundation
import StallReports

/// What a monitor does behind its interface: watching on Linux, and nothing elsewhere or with `STALLWATCH=off`.
protocol MonitorEngine: Sendable {
    /// Whether this is a child of fork(2) of the process that has started the engine; takes no lock.
    var isInherited: Bool { get }

    func watch(
        _ loop: WatchedLoop, threshold: Duration, isServed: Bool
    ) throws(StallWatchError) -> any EngineLoop
    func start() throws(StallWatchError)
    /// Stops; a turn of a loop of `thread`, by default the calling one, ends with the call.
    func stop(inTurnOf thread: Int32?)
    /// Stops on a thread of its own, so that no thread of Swift's pool is blocked.
    func stopOnThread() async

    var statistics: MonitorStatistics { get }
    func makeReports() -> AsyncStream<StallReport>
    func checkHealth() -> HealthRecord
    func checkCapabilities() -> Capabilities
    func prove() -> MonitorProof

    func beginPause()
    func endPause()
    /// Begins an operation of the current task; returns its place, for ``endOperation(_:)``.
    func beginOperation(_ name: String, _ limit: Duration, _ context: StallContext?) -> Int
    func endOperation(_ operation: Int)

    func settle(_ labels: Set<String>, until deadline: UInt64) -> Bool
}

extension MonitorEngine {
    var isInherited: Bool { false }
}

protocol EngineLoop: Sendable {
    func setThreshold(_ threshold: Duration)
    var statistics: LoopStatistics { get }
    func stop()
}

/// An engine that watches nothing.
///
/// `@unchecked Sendable`: the lock guards the variable. Mutex would need macOS 15.
final class IdleEngine: MonitorEngine, @unchecked Sendable {
    private enum Phase { case made, started, stopped }

    private let lock = NSLock()
    private var phase: Phase
    private let isOfParent: Bool
    private let streams = ReportStreams()
    private let health: HealthState
    private let started: @Sendable () throws(StallWatchError) -> Void
    private let stopped: @Sendable () -> Void

    /// Creates an engine that says that its health is `health`, and calls the closures when it starts and stops; or one
    /// in place of an engine that the process's parent has started.
    init(
        health: HealthState = .stopped, isOfParent: Bool = false,
        started: @escaping @Sendable () throws(StallWatchError) -> Void,
        stopped: @escaping @Sendable () -> Void = {}
    ) {
        self.health = health
        self.isOfParent = isOfParent
        phase = isOfParent ? .started : .made
        self.started = started
        self.stopped = stopped
    }

    // What `started` has begun goes on: a running monitor needs no reference.
    deinit {
        streams.finish()
    }

    func watch(
        _ loop: WatchedLoop, threshold: Duration, isServed: Bool
    ) throws(StallWatchError) -> any EngineLoop {
        IdleLoop(label: loop.label)
    }

    func start() throws(StallWatchError) {
        let before = lock.withLock {
            defer { if phase == .made { phase = .started } }
            return phase
        }
        switch before {
        case .made: try started()
        case .started: throw .startedTwice
        case .stopped: throw .startedAfterStop
        }
    }

    func stop(inTurnOf thread: Int32?) {
        let before = lock.withLock {
            defer { phase = .stopped }
            return phase
        }
        if before == .started { stopped() }
        streams.finish()
    }

    func stopOnThread() async { stop(inTurnOf: nil) }

    var statistics: MonitorStatistics { MonitorStatistics() }

    func makeReports() -> AsyncStream<StallReport> { streams.stream() }

    func checkHealth() -> HealthRecord {
        let now = Timestamp(microsecondsSince1970: Int64(Date().timeIntervalSince1970 * 1_000_000))
        return HealthRecord(
            state: lock.withLock { phase == .started } ? health : .stopped, checkedAt: now,
            checkedAtMonotonicMilliseconds: 0, progressedAt: now, process: HealthRecord.Process(pid: getpid()),
            loops: [])
    }

    func checkCapabilities() -> Capabilities {
        Capabilities(environment: Capabilities.Environment(pid: getpid()), features: [])
    }

    func prove() -> MonitorProof {
        if isOfParent {
            return MonitorProof(obstacle: "this process was forked from the monitor's: make a monitor of its own")
        }
        let reason = health == .off ? "is off: unset STALLWATCH" : "watches nothing on this platform"
        return MonitorProof(obstacle: "the monitor \(reason)")
    }

    func beginPause() {}
    func endPause() {}
    func beginOperation(_ name: String, _ limit: Duration, _ context: StallContext?) -> Int { -1 }
    func endOperation(_ operation: Int) {}
    func settle(_ labels: Set<String>, until deadline: UInt64) -> Bool { true }
}

private struct IdleLoop: EngineLoop {
    let label: String

    func setThreshold(_ threshold: Duration) {}
    var statistics: LoopStatistics { LoopStatistics(label: label) }
    func stop() {}
}

extension StallWatchError {
    static let startedTwice = StallWatchError(
        .alreadyStarted, "the monitor has already been started: start it once")
    static let startedAfterStop = StallWatchError(
        .stopped, "the monitor has been stopped: create a new one to start again")
}
