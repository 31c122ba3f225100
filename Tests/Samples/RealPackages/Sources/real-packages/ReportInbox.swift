import Foundation
import StallWatch

/// The finished reports of a monitor, for one thread that waits for them.
///
/// `@unchecked Sendable`: `reports` is only used while `condition` is locked.
final class ReportInbox: @unchecked Sendable {
    private let condition = NSCondition()
    private var reports: [StallReport] = []

    func add(_ report: StallReport) {
        condition.lock()
        reports.append(report)
        condition.broadcast()
        condition.unlock()
    }

    /// Takes the first report of the loop with that label; `nil` if none comes within `seconds`.
    func next(of label: String, within seconds: Double) -> StallReport? {
        let end = Date(timeIntervalSinceNow: seconds)
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let index = reports.firstIndex(where: { $0.loop.label == label }) { return reports.remove(at: index) }
            guard condition.wait(until: end) else { return nil }
        }
    }

    func removeAll() {
        condition.lock()
        reports.removeAll()
        condition.unlock()
    }
}
