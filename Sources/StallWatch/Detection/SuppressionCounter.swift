import StallReports
import Synchronization

/// Counts suppressions by reason; the watchdog writes, and any thread may read.
final class SuppressionCounter: Sendable {
    private let counts = Mutex(SuppressionCounts())

    /// The counts so far.
    var current: SuppressionCounts { counts.withLock { $0 } }

    func add(_ reason: SuppressionReason) {
        counts.withLock { $0[reason] += 1 }
    }
}
