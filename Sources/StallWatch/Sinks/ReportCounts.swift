import LinuxSupport
import StallReports
import Synchronization

/// The counters of the reporter and the sinks.
///
/// Any thread may change them; no monitored thread does.
final class ReportCounts: Sendable {
    /// The counts at one moment.
    struct Counts: Sendable, Equatable {
        /// Finished stalls, reported or not.
        var stalls = 0
        /// Stalls that were detected but not reported, by reason.
        var suppressed = SuppressionCounts()
        /// Reports dropped because a reader of `monitor.reports` was too slow.
        var reportsDropped = 0
        /// Reports that did not reach a sink.
        var reportsLost = 0
        /// Reports removed to keep a directory within its quota.
        var reportsRemoved = 0
        /// Reports of ended processes, recovered at the start.
        var reportsRecovered = 0
        /// Failed attempts to deliver a report to a sink.
        var failedWrites = 0
        /// The error of the last failed attempt.
        var lastWriteError: StallWatchError?
        /// Finished stalls by loop label.
        var stallsByLoop: [String: StallTotals] = [:]
        /// When the last finished stall of each loop was counted, in nanoseconds since 1970.
        var lastStallByLoop: [String: UInt64] = [:]

        /// Counts a finished stall of that duration.
        mutating func add(stallOf nanoseconds: UInt64, on loop: String) {
            stalls += 1
            lastStallByLoop[loop] = wallClockNow()
            stallsByLoop[loop, default: StallTotals()].count += 1
            stallsByLoop[loop, default: StallTotals()].nanoseconds &+= nanoseconds
        }
    }

    /// The number and total duration of one loop's stalls.
    struct StallTotals: Sendable, Equatable {
        var count = 0
        var nanoseconds: UInt64 = 0
    }

    private let counts = Mutex(Counts())

    /// The current counts.
    var current: Counts { counts.withLock { $0 } }

    /// Changes the counts.
    func add(_ body: (inout Counts) -> Void) {
        counts.withLock { body(&$0) }
    }
}
