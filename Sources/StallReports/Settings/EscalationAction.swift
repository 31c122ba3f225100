/// What the reporter does when a stall escalates.
package enum EscalationAction: Sendable {
    /// Calls the app's closure.
    case call(@Sendable (StallReport) -> Void)
    /// Ends the process with abort(3).
    case abort
}
