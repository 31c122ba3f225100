import LinuxSupport
import StallReports
import Synchronization

/// Applies the app's redaction on threads of its own, because a closure of the app may never return.
///
/// A report that is not redacted in time keeps only its times. While a call is late, there is no further one.
final class Redaction: Sendable {
    /// The longest delay that the closure may cause to a report, in nanoseconds.
    static let timeLimit: UInt64 = 1_000_000_000
    /// The time between two looks at whether there is time left, in nanoseconds.
    private static let interval: UInt64 = 20_000_000

    private let body: @Sendable (inout StallReport) -> Void
    private let timeLimit: UInt64
    private let lateCalls = Atomic<Int>(0)

    init(within timeLimit: UInt64 = Redaction.timeLimit, _ body: @escaping @Sendable (inout StallReport) -> Void) {
        (self.timeLimit, self.body) = (timeLimit, body)
    }

    /// Redacts a report; returns why it keeps only its times, `nil` if it does not.
    func apply(to report: inout StallReport, unless isOver: () -> Bool) -> String? {
        let answer = LateAnswer<(report: StallReport, fault: String?)>()
        let redact = { @Sendable [self, report] in
            var edited = report
            let fault = edited.redact(with: body)
            if answer.give((edited, fault)) { lateCalls.wrappingSubtract(1, ordering: .releasing) }
        }
        if lateCalls.load(ordering: .acquiring) == 0 {
            // Without a thread, here: nothing may be shown that is not redacted.
            if (try? WorkerThread(name: "stallwatch-edit", namesFunctions: true, body: redact)) == nil { redact() }
            let end = monotonicNow() &+ timeLimit
            while !answer.wait(until: monotonicNow() &+ Self.interval), monotonicNow() < end, !isOver() {}
            if let redacted = answer.takeOrLeave({ lateCalls.wrappingAdd(1, ordering: .releasing) }) {
                report = redacted.report
                return redacted.fault
            }
        }
        report.removeAllButTimes()
        return "the closure does not return"
    }
}
