import StallWatch
import Synchronization

/// The surroundings of a scenario: the duration of its stall, the demo's monitor, and its own monitors.
final class ScenarioContext: Sendable {
    /// The monitor's threshold.
    let threshold: Duration
    /// The intended duration of the stall.
    let stall: Duration
    /// How long the scenario `under-load` lasts.
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

    /// Starts another monitor for this scenario.
    ///
    /// It stops once its reports have arrived.
    @discardableResult
    func watch(
        _ loops: WatchedLoop..., saturationThreshold: Duration? = .seconds(10)
    ) async throws -> StallMonitor {
        let monitor = try StallMonitor(
            .init(
                threshold: .fixed(threshold), reports: .directory(directory), saturationThreshold: saturationThreshold)
        )
        for loop in loops { try monitor.watch(loop) }
        try monitor.start()
        ownMonitors.withLock { $0.append(monitor) }
        await inbox.open(monitor.reports)
        return monitor
    }

    /// Adds the reports and counts of a child process to this scenario's.
    func take(_ result: HostResult) {
        host.withLock { $0 = result }
    }
}

extension ScenarioContext {
    /// All monitors that reported to the inbox.
    var monitors: [StallMonitor] { [monitor] + ownMonitors.withLock { $0 } }

    /// The names of the child's report files.
    var hostFiles: [String] { host.withLock { $0?.files ?? [] } }

    /// Returns how often the scenario's monitors, and the child's, have suppressed a stall for one of these reasons.
    func suppressed(_ reasons: [SuppressionReason]) -> Int {
        let counts = monitors.map(\.statistics.suppressed) + (host.withLock { $0?.suppressed }.map { [$0] } ?? [])
        return counts.reduce(0) { sum, counts in reasons.reduce(sum) { $0 + counts[$1] } }
    }

    /// Stops the scenario's own monitors.
    func close() {
        for monitor in ownMonitors.withLock({ $0 }) { monitor.stop() }
    }
}
