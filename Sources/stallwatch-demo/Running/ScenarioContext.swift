import StallWatch
import Synchronization

/// What a scenario has to work with: how long to stall, the demo's monitor, and monitors of its own.
final class ScenarioContext: Sendable {
    /// How long a turn may take.
    let threshold: Duration
    /// How long the stall has to take.
    let stall: Duration
    /// How long a scenario that goes on and on does so.
    let loadTime: Duration
    /// The demo's own monitor, which watches the main run loop under the label `main`.
    let monitor: StallMonitor
    /// The directory of all reports.
    let directory: String
    private let inbox: ReportInbox
    private let ownMonitors = Mutex<[StallMonitor]>([])
    private let host = Mutex<HostResult?>(nil)

    init(
        threshold: Duration, stall: Duration, loadTime: Duration, monitor: StallMonitor, directory: String,
        inbox: ReportInbox
    ) {
        self.threshold = threshold
        self.stall = stall
        self.loadTime = loadTime
        self.monitor = monitor
        self.directory = directory
        self.inbox = inbox
    }

    /// A running monitor of the scenario's own, which is stopped after its reports have come.
    @discardableResult
    func watch(
        _ loops: WatchedLoop..., saturationThreshold: Duration? = .seconds(10)
    ) async throws -> StallMonitor {
        let monitor = try StallMonitor(
            .init(threshold: threshold, reports: .directory(directory), saturationThreshold: saturationThreshold)
        )
        for loop in loops { try monitor.watch(loop) }
        try monitor.start()
        ownMonitors.withLock { $0.append(monitor) }
        await inbox.open(monitor.reports)
        return monitor
    }

    /// A program of another shape has run as a child: what it says counts as this scenario's.
    func take(_ result: HostResult) {
        host.withLock { $0 = result }
    }
}

extension ScenarioContext {
    /// All monitors that reported to the inbox.
    var monitors: [StallMonitor] { [monitor] + ownMonitors.withLock { $0 } }

    /// The reports that a child has left in the directory.
    var hostFiles: [String] { host.withLock { $0?.files ?? [] } }

    /// How often the scenario's monitors, or the child's, have held something back for `reason`.
    func suppressed(_ reason: SuppressionReason) -> Int {
        monitors.reduce(host.withLock { $0?.suppressed[reason] ?? 0 }) { $0 + $1.statistics.suppressed[reason] }
    }

    /// Stops the scenario's own monitors.
    func close() {
        for monitor in ownMonitors.withLock({ $0 }) { monitor.stop() }
    }
}
