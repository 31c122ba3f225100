import StallReports

/// What a monitor does about a stall that does not end.
public struct Escalation: Sendable {
    /// After how many times the threshold: 2 to 1,000,000.
    let multiple: Int
    let action: EscalationAction

    /// Calls `body`, on a thread of the monitor's own, once a stall has lasted for `multiple` thresholds.
    public static func call(
        after multiple: Int, _ body: @escaping @Sendable (StallReport) -> Void
    ) -> Escalation {
        Escalation(multiple: multiple, action: .call(body))
    }

    /// Ends the process with abort(3), so that a supervisor starts it again, once a stall has lasted for `multiple`
    /// thresholds.
    ///
    /// The report is written first. A disk that does not answer delays the end by 5 seconds, a log or another sink by
    /// one more. The report stays `ongoing`, and the next start makes it `abandoned`.
    public static func abort(after multiple: Int) -> Escalation {
        Escalation(multiple: multiple, action: .abort)
    }

    /// The multiple, if it is in range.
    func validMultiple() throws(StallWatchError) -> Int {
        guard (2...1_000_000).contains(multiple) else {
            throw StallWatchError(
                .invalidConfiguration, "stalls escalate after \(multiple) thresholds: give a number from 2 to 1,000,000"
            )
        }
        return multiple
    }
}
