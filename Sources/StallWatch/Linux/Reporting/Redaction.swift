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
    private let last = Mutex<LateCall<(report: StallReport, fault: String?)>?>(nil)

    init(within timeLimit: UInt64 = Redaction.timeLimit, _ body: @escaping @Sendable (inout StallReport) -> Void) {
        (self.timeLimit, self.body) = (timeLimit, body)
    }

    /// Redacts a report until a deadline in monotonic nanoseconds; returns why it keeps only its times, `nil` if it does not.
    func apply(to report: inout StallReport, until deadline: UInt64) -> String? {
        let redacted = last.withLock { [report, body, timeLimit] last -> (report: StallReport, fault: String?)? in
            guard last == nil || last?.result != nil else { return nil }
            last = try? LateCall(name: "stallwatch-edit", namesFunctions: true) { _ in
                var edited = report
                let fault = edited.redact(with: body)
                return (edited, fault)
            }
            return last?.value(until: min(deadline, monotonicNow() &+ timeLimit))
        }
        if let redacted {
            report = redacted.report
            return redacted.fault
        }
        report.removeAllButTimes()
        return "the closure does not return"
    }
}
