import StallReports
import Synchronization

/// Counts what the reporter and the sinks do.
///
/// Any thread may add to it; no monitored one does.
final class ReportCounts: Sendable {
    /// The counts at one moment.
    struct Counts: Sendable, Equatable {
        /// Stalls that are over, reported or not.
        var stalls = 0
        /// Stalls that were seen and not reported, by reason.
        var suppressed = SuppressionCounts()
        /// Reports that a slow reader of the monitor's sequence has missed.
        var reportsDropped = 0
        /// Reports that a sink has missed.
        var reportsLost = 0
        /// Reports that were removed to stay inside a directory's quota.
        var reportsRemoved = 0
        /// Reports of processes that are gone, found at the start.
        var reportsRecovered = 0
        /// Attempts to hand a report to a sink that failed.
        var failedWrites = 0
        /// Why the last one of them failed.
        var lastWriteError: StallWatchError?
        /// Stalls by the loop's label.
        var stallsByLoop: [String: StallTotals] = [:]

        /// Counts a stall that is over.
        mutating func add(stallOf nanoseconds: UInt64, on loop: String) {
            stalls += 1
            stallsByLoop[loop, default: StallTotals()].count += 1
            stallsByLoop[loop, default: StallTotals()].nanoseconds &+= nanoseconds
        }
    }

    /// The stalls of one loop.
    struct StallTotals: Sendable, Equatable {
        var count = 0
        var nanoseconds: UInt64 = 0
    }

    private let counts = Mutex(Counts())

    /// The counts now.
    var current: Counts { counts.withLock { $0 } }

    /// Changes the counts.
    func add(_ body: (inout Counts) -> Void) {
        counts.withLock { body(&$0) }
    }
}
