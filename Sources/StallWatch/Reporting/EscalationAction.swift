import StallReports

/// What the reporter does when a stall escalates.
enum EscalationAction: Sendable {
    /// Calls a closure of the app.
    case call(@Sendable (StallReport) -> Void)
    /// Ends the process with abort(3).
    case abort
}
