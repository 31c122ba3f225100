import Glibc
import LinuxSupport
package import StallReports
import Synchronization

/// Reports all threads of a process that has made no progress for a while.
package enum HangDump {
    /// The longest time until there is a report, in nanoseconds.
    static let longestTime: UInt64 = 10_000_000_000

    /// Captures all threads of this process now, and reports them while they stay as they are.
    ///
    /// The report describes the main thread as a loop in a turn, and each other thread with what it waits for. Blocks the
    /// calling thread until the report is finished: some 50 ms.
    ///
    /// - Parameters:
    ///   - label: What hangs: the loop's label in the report.
    ///   - since: The time of the last progress, in monotonic nanoseconds.
    ///   - directory: The directory that receives the report; `nil` for none.
    ///   - settings: The monitor whose names, metadata, paths and redaction the report has; `nil` for the defaults.
    /// - Returns: The report; `nil` if the threads could not be captured in time.
    /// - Throws: ``StallWatchError`` if the monitor cannot start.
    package static func take(
        _ label: String, since: UInt64, directory: String?, like settings: StallMonitor.Configuration? = nil
    ) throws(StallWatchError) -> StallReport? {
        let found = FoundReport()
        var configuration = StallMonitor.Configuration(
            threshold: .fixed(StallMonitor.Configuration.minimumThreshold),
            reports: directory.map { .directory($0) } ?? .none,
            sinks: [.closure { found.end($0) }], captureAllThreads: true, saturationThreshold: nil,
            whenDebugged: .report
        )
        if let settings {
            configuration.metadata = settings.metadata
            configuration.symbolication = settings.symbolication
            configuration.inApp = settings.inApp
            configuration.pathStyle = settings.pathStyle
            configuration.redact = settings.redact
        }
        configuration.onStallBegan = { _ in found.begin() }
        let monitor = try StallMonitor(configuration)
        let probe = LoopProbe(label: label)
        try monitor.watch(.probe(probe))
        try monitor.start()
        defer { monitor.stop() }
        let deadline = monotonicNow() &+ longestTime
        probe.beginTurn(at: since, of: getpid())
        guard found.begun.wait(until: deadline) else { return nil }
        probe.endTurn()
        _ = monitor.settle([label], until: deadline)
        return found.report
    }

    /// The report of a dump, and the moment from which it has its stacks.
    private final class FoundReport: Sendable {
        let begun = Semaphore()
        private let state = Mutex<StallReport?>(nil)

        var report: StallReport? { state.withLock { $0 } }

        func begin() { begun.post() }

        func end(_ report: StallReport) {
            // The directory may have reports of earlier processes.
            guard report.process.pid == getpid() else { return }
            state.withLock { $0 = report }
        }
    }
}
