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
    private let last = Mutex<LateCall<Redacted>?>(nil)

    struct Redacted: Sendable {
        var report: StallReport
        /// The list of tasks that refers to the report's stacks, if it has been given.
        var tasks: TaskList?
        var fault: String?
    }

    static let lateFault = "the closure does not return"

    init(within timeLimit: UInt64 = Redaction.timeLimit, _ body: @escaping @Sendable (inout StallReport) -> Void) {
        (self.timeLimit, self.body) = (timeLimit, body)
    }

    /// Redacts a report until a deadline in monotonic nanoseconds; returns why it keeps only its times, `nil` if it does not.
    func apply(to report: inout StallReport, until deadline: UInt64) -> String? {
        if let redacted = redacted(report, until: deadline) {
            report = redacted.report
            return redacted.fault
        }
        report.removeAllButTimes()
        return Self.lateFault
    }

    /// Returns a report as redacted, and the list of tasks that goes with it; `nil` if the closure does not return in time.
    func redacted(_ report: StallReport, with tasks: TaskList? = nil, until deadline: UInt64 = .max) -> Redacted? {
        last.withLock { [body, timeLimit] last -> Redacted? in
            guard last == nil || last?.result != nil else { return nil }
            last = try? LateCall(name: "stallwatch-edit", namesFunctions: true) { _ in
                var edited = report
                guard var list = tasks else {
                    let fault = edited.redact(with: body)
                    return Redacted(report: edited, fault: fault)
                }
                list.redact(with: &edited, body)
                return Redacted(report: edited, tasks: list)
            }
            guard let redacted = last?.value(until: min(deadline, monotonicNow() &+ timeLimit)) else { return nil }
            // A list of tasks is large.
            last = nil
            return redacted
        }
    }
}

extension TaskList {
    /// Applies the app's redaction to the list's report, and to the list what follows from it.
    mutating func redact(with report: inout StallReport, _ body: @Sendable (inout StallReport) -> Void) {
        report.tasks = self
        _ = report.redact(with: body)
        // The closure may remove stacks, but it cannot see the tasks that refer to them, nor their names.
        let hasStacks = report.tasks != nil
        report.tasks = nil
        for index in tasks.indices {
            tasks[index].name = nil
            if !hasStacks { tasks[index].stack = nil }
        }
        if !hasStacks { for index in executors.indices { executors[index].name = nil } }
    }
}
