import Synchronization

/// What the reporter and the sinks have counted.
///
/// Any thread may add to it; no monitored one does.
final class ReportCounts: Sendable {
    private let statistics = Mutex(StallMonitor.Statistics())

    /// The counts now.
    var current: StallMonitor.Statistics { statistics.withLock { $0 } }

    /// Changes the counts.
    func add(_ body: (inout StallMonitor.Statistics) -> Void) {
        statistics.withLock { body(&$0) }
    }
}
