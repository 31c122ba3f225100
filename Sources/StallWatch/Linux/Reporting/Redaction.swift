import LinuxSupport
import StallReports
import Synchronization

/// Applies the app's redaction on threads of its own, because a closure of the app may never return.
///
/// A report that is not redacted in time keeps only its times. While a call is late, there is no further one.
final class Redaction: Sendable {
    /// The longest delay that the closure may cause to a report, in nanoseconds: shorter than ``StallMonitor/stop()`` waits.
    static let timeLimit: UInt64 = 800_000_000

    private let body: @Sendable (inout StallReport) -> Void
    private let timeLimit: UInt64
    /// Held while a call has time, so that one that runs when the next one comes is late.
    private let turn = Mutex(())
    private let isRunning = Atomic<Bool>(false)

    init(within timeLimit: UInt64 = Redaction.timeLimit, _ body: @escaping @Sendable (inout StallReport) -> Void) {
        (self.timeLimit, self.body) = (timeLimit, body)
    }

    /// Redacts a report until a deadline in monotonic nanoseconds; returns why it keeps only its times, `nil` if it does not.
    func apply(to report: inout StallReport, until deadline: UInt64) -> String? {
        if let (edited, fault) = turn.withLock({ [report] _ in redacted(report, until: deadline) }) {
            report = edited
            return fault
        }
        report.removeAllButTimes()
        return "the closure does not return"
    }

    private func redacted(_ report: StallReport, until deadline: UInt64) -> (StallReport, fault: String?)? {
        guard !isRunning.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
        let result = Mutex<(StallReport, fault: String?)?>(nil)
        let thread = try? WorkerThread(name: "stallwatch-edit", namesFunctions: true) { [self] in
            var edited = report
            let fault = edited.redact(with: body)
            result.withLock { [edited] in $0 = (edited, fault) }
            isRunning.store(false, ordering: .releasing)
        }
        if thread == nil { isRunning.store(false, ordering: .releasing) }
        thread?.finish(until: min(deadline, monotonicNow() &+ timeLimit))
        return result.withLock { $0 }
    }
}
