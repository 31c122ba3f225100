import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// A destination of reports, created and used only on its own thread.
protocol Sink {
    /// Called once, before the first delivery.
    func start()

    /// Handles one delivery; may block. If it throws, a store's worker tries the delivery again later.
    func receive(_ delivery: Delivery) throws(StallWatchError)

    /// Tries what the next report needs, as far as that can be tried without one.
    func checkReadiness() throws(StallWatchError)

    /// Called once, after the last delivery; returns the errors of what was still to be written.
    func finish() -> [StallWatchError]
}

extension Sink {
    func start() {}
    func checkReadiness() throws(StallWatchError) {}
    func finish() -> [StallWatchError] { [] }
}

struct SinkDescription: Sendable {
    /// The thread's name; at most 15 bytes.
    var name: String
    var events: Set<Delivery.Event>
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

struct Delivery: Sendable {
    enum Event: Sendable {
        /// A stall's first named report: `ongoing`, unless the stall has already ended.
        case began
        /// A newer report of an ongoing stall, or its first report without names.
        case updated
        /// The final report of a stall that is reported: it ended, or the monitor stopped following it.
        case ended
        /// The final report of a stall that is counted, but not reported. Stores keep the newest such one of each
        /// fingerprint, which stands for all since the last report.
        case suppressed
        /// A report that an earlier process left, now `abandoned`.
        case recovered
        /// The report of a stall that has reached the app's escalation time.
        case escalated
        case notice
        case interval
    }

    let event: Event
    /// The report; `nil` for a notice and an interval.
    let report: StallReport?
    /// Why the stall is not reported; `nil` unless the event is `suppressed`.
    private(set) var reason: SuppressionReason?
    /// The number of stalls that the final report stands for: those that were over when the watchdog looked may be many.
    private(set) var stalls = 1
    private(set) var message = ""
    private(set) var metadata: [String: String] = [:]
    private(set) var interval: [LoopStatistics] = []
    /// Whether the report has only the stall's times: it stands for a final one that was lost.
    private(set) var isCut = false

    init(_ event: Event, _ report: StallReport) { (self.event, self.report) = (event, report) }

    /// Creates the delivery of a final report; with a reason, the stall is counted, but not reported.
    init(ended report: StallReport, suppressed reason: SuppressionReason? = nil, stalls: Int = 1) {
        self.init(reason == nil ? .ended : .suppressed, report)
        (self.reason, self.stalls) = (reason, stalls)
    }

    init(notice message: String, _ metadata: [String: String] = [:]) {
        (event, report, self.message, self.metadata) = (.notice, nil, message, metadata)
    }

    init(_ interval: [LoopStatistics]) { (event, report, self.interval) = (.interval, nil, interval) }

    var id: String? { report?.id }

    /// Whether no newer state of the report follows.
    var isFinal: Bool { [.ended, .suppressed, .recovered].contains(event) }

    /// What a store that has the ongoing stall still needs if this is lost; `nil` unless the report is final.
    var cut: Self? {
        guard var report, report.state != .ongoing else { return nil }
        report.removeAllButTimes()
        var end = Self(ended: report)
        end.isCut = true
        return end
    }
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

extension FixedDirectory {
    /// Does something in the directory; if it is missing, opens it again `after` a step, and tries again.
    ///
    /// It does the same if the program has closed a file meanwhile.
    func reopening(
        after step: () throws(StallWatchError) -> Void = {}, _ body: () throws(SystemError) -> Void
    ) throws(StallWatchError) {
        do throws(SystemError) {
            try body()
        } catch  where error.errno == ENOENT || error.errno == EBADF {
            try step()
            reopen()
            try throwing(.unwritableReports, body)
        } catch {
            throw StallWatchError(.unwritableReports, error)
        }
    }
}
