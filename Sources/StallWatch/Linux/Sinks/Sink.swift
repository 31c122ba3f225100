import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// A destination of reports, created and used only on its own thread.
protocol Sink {
    /// Called once, before the first delivery.
    func start()

    /// Handles one delivery; may block. If it throws, a store's worker tries the delivery again later.
    func take(_ delivery: Delivery) throws(StallWatchError)

    /// Called once, after the last delivery; returns the errors of what was still to be written.
    func finish() -> [StallWatchError]
}

extension Sink {
    func start() {}
    func finish() -> [StallWatchError] { [] }
}

/// The properties of a sink that its worker thread uses.
struct SinkDescription: Sendable {
    /// The thread's name; at most 15 bytes.
    var name: String
    var interests: Set<Delivery.Interest>
    /// Whether failed deliveries are retried, and a newer delivery replaces a queued one of the same report: for files,
    /// of which only the newest state counts, but not for code that may have done half of its work.
    var isStore = false
    /// The least length of the intervals that the sink receives, in nanoseconds; `nil` if it receives none.
    var intervalLength: UInt64?
    /// The file that cannot be flushed to the disk, with the reason; `nil` if all can.
    var unflushed: String?
    var make: @Sendable () -> any Sink
}

/// Checks that a sink can work and returns its description, `nil` for an output without a sink; the second parameter receives reports of earlier processes.
typealias SinkFactory =
    @Sendable (ReportCounts, _ recovered: @escaping @Sendable (StallReport) -> Void) throws(StallWatchError)
    -> SinkDescription?

indirect enum Delivery: Sendable {
    /// A stall's first named report: `ongoing`, unless the stall has already ended.
    case began(StallReport)
    /// A newer report of an ongoing stall, or its first report without names.
    case updated(StallReport)
    /// A stall's final report: the stall ended, or the monitor stopped following it. With a reason, it is counted, but
    /// not reported. Stores keep the newest such one of each fingerprint, which stands for all since the last report.
    case ended(StallReport, SuppressionReason?)
    /// A report that an earlier process left, now `abandoned`.
    case recovered(StallReport)
    /// The report of a stall that has reached the app's escalation time.
    case escalated(StallReport)
    /// A log message about the monitor itself, with its metadata.
    case notice(String, [String: String])
    /// What the loops did in an interval.
    case interval([LoopStatistics])

    /// The report's id; `nil` for a notice.
    var id: String? {
        switch self {
        case .began(let report), .updated(let report), .ended(let report, _), .recovered(let report),
            .escalated(let report):
            report.id
        case .notice, .interval: nil
        }
    }

    var interest: Interest {
        switch self {
        case .began: .began
        case .updated: .updated
        case .ended(_, nil): .ended
        case .ended: .suppressed
        case .recovered: .recovered
        case .escalated: .escalated
        case .notice: .notice
        case .interval: .interval
        }
    }

    /// The kinds of deliveries, of which a sink receives some.
    enum Interest { case began, updated, ended, suppressed, recovered, escalated, notice, interval }
}

/// Passes deliveries from one sink to the other sinks, which may be created after it.
final class SinkEventRelay: Sendable {
    private let receiver = Mutex<(@Sendable (Delivery) -> Void)?>(nil)

    func open(_ receiver: @escaping @Sendable (Delivery) -> Void) {
        self.receiver.withLock { $0 = receiver }
    }

    func post(_ delivery: Delivery) {
        receiver.withLock { $0 }?(delivery)
    }

    /// Releases the receiver and its sinks, which refer to this relay: otherwise they would form a reference cycle.
    func close() {
        receiver.withLock { $0 = nil }
    }
}

extension StallWatchError {
    init(_ code: Code, _ error: SystemError) {
        self.init(code, error.message, errno: error.errno)
    }
}

/// Runs `body` and rethrows its error as a ``StallWatchError`` of the given kind.
func throwing<Result>(
    _ code: StallWatchError.Code, _ body: () throws(SystemError) -> Result
) throws(StallWatchError) -> Result {
    do throws(SystemError) {
        return try body()
    } catch {
        throw StallWatchError(code, error)
    }
}

extension FileFlush {
    /// Returns the path and the reason if a file cannot be flushed to the disk; `nil` if it can.
    func refusal(of path: String) -> String? {
        guard case .unavailable(let error) = self else { return nil }
        return "\(path): fsync: \(String(cString: strerror(error)))"
    }
}
