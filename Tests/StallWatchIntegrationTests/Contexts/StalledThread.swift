import LinuxSupport
import StallReports
import StallWatch
import Synchronization

/// A thread whose one turn stalls until it is reported, in a context that the test sets.
final class StalledThread: Sendable {
    /// How the thread stalls.
    enum Way: CaseIterable {
        /// It sleeps: its stack is read.
        case sleeping
        /// It computes: it is stopped.
        case spinning
    }

    private let probe = LoopProbe(label: "worked")
    private let isReported = Atomic<Bool>(false)
    private let reported = Semaphore()
    private let reports = Mutex<[StallReport]>([])

    /// The longest time that a stall waits for its report, in nanoseconds.
    private static let patience: UInt64 = 10_000_000_000

    private init() {}

    /// Stalls a thread and returns the report.
    ///
    /// - Parameters:
    ///   - redact: The configuration's redaction.
    ///   - body: The code of the thread; it calls its parameter, which stalls.
    /// - Returns: The report; `nil` if there is none in time.
    /// - Throws: The errors of the monitor and the thread.
    static func report(
        redact: (@Sendable (inout StallReport) -> Void)? = nil,
        _ body: @escaping @Sendable (_ stall: @escaping @Sendable (Way) -> Void) -> Void
    ) throws -> StallReport? {
        let stalled = StalledThread()
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(30), reports: .none,
            sinks: [.closure { report in stalled.reports.withLock { $0.append(report) } }])
        configuration.onStallBegan = { _ in
            stalled.isReported.store(true, ordering: .releasing)
            stalled.reported.post()
        }
        configuration.redact = redact
        configuration.reportsEveryRepeat = true
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(stalled.probe))
        try monitor.start()
        let thread = try WorkerThread(name: "worked") {
            stalled.probe.beginTurn()
            body { stalled.stall($0) }
            stalled.probe.endTurn()
        }
        thread.join()
        _ = monitor.settle(["worked"], until: monotonicNow() + patience)
        monitor.stop()
        return stalled.reports.withLock { $0.first }
    }

    /// Stalls until the stall is reported.
    private func stall(_ way: Way) {
        let deadline = monotonicNow() + Self.patience
        switch way {
        case .sleeping: _ = reported.wait(until: deadline)
        case .spinning:
            while !isReported.load(ordering: .acquiring), monotonicNow() < deadline {}
        }
    }
}
