import LinuxSupport
import StallReports
import Synchronization

final class LoopEntry: Sendable {
    let label: String
    let identity: ObjectIdentifier?
    /// At least one; all have the same threshold.
    let monitors: [LoopMonitor]
    /// When the watch began, in monotonic nanoseconds.
    let since = monotonicNow()
    /// What was counted of earlier watches with the same label; `nil` if nothing was.
    private let before: ReportCounts.StallTotals?
    /// What had been counted when the next watch with the same label began; `nil` until then.
    private let after = Mutex<ReportCounts.StallTotals?>(nil)
    /// When it ended, in monotonic nanoseconds; 0 before.
    private let end = Atomic<UInt64>(0)

    init(
        label: String, identity: ObjectIdentifier?, monitors: [LoopMonitor], before: ReportCounts.StallTotals? = nil
    ) {
        self.label = label
        self.identity = identity
        self.monitors = monitors
        self.before = before
    }

    /// Returns the stalls of this watch; `nil` if there are none.
    func stalls(in totals: [String: ReportCounts.StallTotals]) -> ReportCounts.StallTotals? {
        (after.withLock { $0 } ?? totals[label]).map { $0.since(before) }.flatMap { $0.count > 0 ? $0 : nil }
    }

    /// Leaves what is counted from now on to the next watch with the same label.
    func leaveCount(at totals: ReportCounts.StallTotals?) {
        let last = totals ?? ReportCounts.StallTotals()
        after.withLock { $0 = last }
    }

    /// When the watch ended, in monotonic nanoseconds; `nil` while it lasts.
    var ended: UInt64? {
        let end = end.load(ordering: .relaxed)
        return end == 0 ? nil : end
    }

    func begin() { for monitor in monitors { monitor.begin(at: monotonicNow()) } }

    func markEnded() { end.store(monotonicNow(), ordering: .relaxed) }

    func removeSources() { for monitor in monitors { monitor.source.remove() } }

    /// How long the program may keep the locks of loops before they are observed, or left, later: in nanoseconds.
    private static let patience: UInt64 = 100_000_000

    /// Waits until loops are observed, or left, but never for long; to be called without the engine's lock.
    static func settle(_ loops: [LoopEntry]) {
        let deadline = monotonicNow() &+ patience
        for loop in loops { for monitor in loop.monitors { monitor.source.settle(until: deadline) } }
    }
}

struct LiveLoop: EngineLoop {
    let engine: LiveEngine
    let entry: LoopEntry

    func setThreshold(_ threshold: Duration) {
        for monitor in entry.monitors { monitor.setThreshold(nanoseconds(threshold)) }
    }

    // In a child of fork(2), a thread that it does not have may hold the locks.
    var statistics: LoopStatistics {
        engine.isInherited ? LoopStatistics(label: entry.label) : engine.statistics(of: entry)
    }

    func stop() { if !engine.isInherited { engine.unwatch(entry) } }
}
