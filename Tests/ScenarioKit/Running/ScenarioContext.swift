import Foundation
import Glibc
import LinuxSupport
package import StallWatch
import Synchronization

/// The surroundings of a scenario: the duration of its stall, the demo's monitor, and its own monitors.
package final class ScenarioContext: Sendable {
    /// The monitor's threshold.
    package let threshold: Duration
    /// The intended duration of the stall.
    package let stall: Duration
    /// How long the scenario `under-load` lasts.
    package let loadTime: Duration
    /// The demo's own monitor, which watches the main run loop under the label `main`.
    package let monitor: StallMonitor
    /// The directory of all reports.
    package let directory: String
    private let inbox: ReportInbox
    private let ownMonitors = Mutex<[StallMonitor]>([])
    private let host = Mutex<HostResult?>(nil)
    private let peer = Mutex<Int32?>(nil)

    package init(
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
    package func watch(
        _ loops: WatchedLoop..., saturationThreshold: Duration? = .seconds(10),
        modalModes: Set<String> = []
    ) async throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(
            threshold: .fixed(threshold), reports: .directory(directory), saturationThreshold: saturationThreshold)
        configuration.modeStarvation?.modalModes = modalModes
        let monitor = try StallMonitor(configuration)
        for loop in loops { try monitor.watch(loop) }
        try monitor.start()
        ownMonitors.withLock { $0.append(monitor) }
        await inbox.open(monitor.reports)
        return monitor
    }

    /// Notes the process for which the thread waits.
    package func expectPeer(_ process: Int32) { peer.withLock { $0 = process } }

    /// The process for which the thread waits; `nil` if the scenario has not said.
    package var expectedPeer: Int32? { peer.withLock { $0 } }

    /// Adds the reports and counts of a child process to this scenario's.
    package func take(_ result: HostResult) {
        host.withLock { $0 = result }
    }
}

extension ScenarioContext {
    /// All monitors that reported to the inbox.
    package var monitors: [StallMonitor] { [monitor] + ownMonitors.withLock { $0 } }

    /// The names of the child's report files.
    package var hostFiles: [String] { host.withLock { $0?.files ?? [] } }

    /// Returns how often the scenario's monitors, and the child's, have suppressed a stall for one of these reasons.
    package func suppressed(_ reasons: [SuppressionReason]) -> Int {
        let counts = monitors.map(\.statistics.suppressed) + (host.withLock { $0?.suppressed }.map { [$0] } ?? [])
        return counts.reduce(0) { sum, counts in reasons.reduce(sum) { $0 + counts[$1] } }
    }

    /// Stops the scenario's own monitors.
    package func close() {
        for monitor in ownMonitors.withLock({ $0 }) { monitor.stop() }
    }
}

/// Keeps the reports of several monitors until a caller takes them.
package actor ReportInbox {
    private var waiting: [StallReport] = []
    private var readers: [Int: Task<Void, Never>] = [:]
    private var opened = 0

    package init() {}

    /// Starts to read `reports`, up to the end of the stream.
    package func open(_ reports: AsyncStream<StallReport>) {
        let number = opened
        opened += 1
        // A finished reader is removed, because a soak opens thousands.
        readers[number] = Task {
            for await report in reports { waiting.append(report) }
            readers[number] = nil
        }
    }

    /// Waits for `count` reports, for `limit` at most, and then `settling` longer for unexpected ones.
    ///
    /// - Returns: All reports since the last call.
    package func reports(atLeast count: Int, within limit: Duration, settling: Duration) async -> [StallReport] {
        let end = ContinuousClock.now + limit
        while waiting.count < count, ContinuousClock.now < end { await pause(.milliseconds(5)) }
        await pause(settling)
        return takeAll()
    }

    /// Waits for the end of all streams, which comes after their monitors have stopped.
    ///
    /// - Returns: All reports since the last call.
    package func rest() async -> [StallReport] {
        for reader in readers.values { await reader.value }
        return takeAll()
    }

    private func takeAll() -> [StallReport] {
        defer { waiting.removeAll() }
        return waiting
    }
}
