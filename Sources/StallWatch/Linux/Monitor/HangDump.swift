import Glibc
import LinuxSupport
import StackCapture
package import StallReports
import Synchronization

package enum ReportedTasks: Sendable {
    case all
    /// The task at this address and those that it waits for.
    case chain(UInt64)
}

package enum HangDump {
    /// The calling task and those that it waits for, which a dump may be about.
    package static var currentTask: ReportedTasks { .chain(SwiftTask.currentAddress) }

    /// The longest time until there is a report, in nanoseconds.
    static let longestTime: UInt64 = 20_000_000_000
    /// The time that is kept for the report when the tasks take long, in nanoseconds (10 s).
    private static let settlingTime: UInt64 = 10_000_000_000

    /// Captures all threads of this process now, and reports them while they stay as they are.
    ///
    /// The report describes the main thread as a loop in a turn since `since`, and each other thread with what it waits
    /// for. Blocks the calling thread until the report is finished: some 50 ms, and a second and more if a task awaits a
    /// continuation, for which it searches. The result is `nil` if that takes too long. `settings` are those of the
    /// monitor whose names, metadata, paths and redaction the report has; it then has no tasks.
    package static func take(
        _ label: String, since: UInt64, directory: String?, tasks: ReportedTasks = .all,
        like settings: StallMonitor.Configuration? = nil
    ) throws(StallWatchError) -> StallReport? {
        let begun = Semaphore()
        let found = Mutex<StallReport?>(nil)
        let keep = { @Sendable (report: StallReport) in
            // The directory may have reports of earlier processes.
            if report.isOfThisProcess { found.withLock { $0 = report } }
        }
        var configuration = StallMonitor.Configuration(
            threshold: StallMonitor.Configuration.minimumThreshold,
            outputs: (directory.map { [.directory($0)] } ?? []) + [.closure(keep)],
            detection: .init(
                saturationThreshold: nil, modeStarvation: nil, pinnedThreshold: nil, whenDebugged: .report,
                capturesAllThreads: true)
        )
        if let settings {
            configuration.privacy = settings.privacy
            configuration.symbols = settings.symbols
        }
        configuration.onEvent = { if case .began = $0 { begun.post() } }
        let monitor = try StallMonitor(configuration, environment: .none)
        let probe = LoopProbe(label: label)
        try monitor.watch(.probe(probe))
        try monitor.start()
        defer { monitor.stop() }
        let deadline = monotonicNow() &+ longestTime
        probe.turns.begin(at: since, of: getpid())
        if settings == nil {
            (monitor.engine as? LiveEngine)?.watchdog.report(HangTasks(tasks).read(until: deadline &- settlingTime))
        }
        guard begun.wait(until: deadline) else { return nil }
        probe.endTurn()
        _ = monitor.settle([label], until: deadline)
        return found.withLock { $0 }
    }
}
