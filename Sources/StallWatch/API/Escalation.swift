import StallReports

/// The action that a monitor takes when a stall lasts for many times its threshold.
public struct Escalation: Sendable {
    /// The number of thresholds after which the action runs: 2 to 1,000,000.
    let multiple: Int
    let action: EscalationAction

    /// Returns an escalation that calls `body` with the report once a stall has lasted for `multiple` thresholds.
    ///
    /// `body` runs on a thread that belongs to the monitor.
    ///
    /// - Parameters:
    ///   - multiple: The number of thresholds: 2 to 1,000,000. ``StallMonitor/init(_:)`` throws for any other number.
    ///   - body: Receives the report of the stall, which is still `ongoing`.
    /// - Returns: The escalation.
    public static func call(
        after multiple: Int, _ body: @escaping @Sendable (StallReport) -> Void
    ) -> Escalation {
        Escalation(multiple: multiple, action: .call(body))
    }

    /// Returns an escalation that ends the process with abort(3), so that a supervisor restarts it.
    ///
    /// The monitor writes the report first. A disk that does not answer delays the abort by up to 5 seconds, and any
    /// other sink by up to 1 second more. The report stays `ongoing` until the next start marks it as `abandoned`.
    ///
    /// - Parameter multiple: The number of thresholds that a stall must last: 2 to 1,000,000. ``StallMonitor/init(_:)``
    ///   throws for any other number.
    /// - Returns: The escalation.
    public static func abort(after multiple: Int) -> Escalation {
        Escalation(multiple: multiple, action: .abort)
    }

    /// Returns the multiple, or throws if it is out of range.
    func validMultiple() throws(StallWatchError) -> Int {
        guard (2...1_000_000).contains(multiple) else {
            throw StallWatchError(
                .invalidConfiguration,
                "the escalation is set to \(multiple) thresholds: give a number from 2 to 1,000,000"
            )
        }
        return multiple
    }
}
