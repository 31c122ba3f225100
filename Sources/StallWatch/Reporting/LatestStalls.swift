import StallReports
import Synchronization

/// The latest stalls of all loops, for the control socket.
///
/// Any thread may use it; the lock is held for some microseconds.
final class LatestStalls: Sendable {
    /// The number of stalls that are kept.
    static let limit = 20

    private let stalls = Mutex<[ControlAnswer.StallSummary]>([])

    /// The stalls, the newest first.
    var current: [ControlAnswer.StallSummary] { stalls.withLock { $0 } }

    /// Keeps the newest state of a stall.
    func note(_ report: StallReport) {
        let summary = ControlAnswer.StallSummary(report)
        stalls.withLock { stalls in
            if let known = stalls.firstIndex(where: { $0.id == report.id }) {
                stalls[known] = summary
            } else {
                stalls.insert(summary, at: stalls.firstIndex { $0.startedAt <= summary.startedAt } ?? stalls.count)
                if stalls.count > Self.limit { stalls.removeLast() }
            }
        }
    }
}
