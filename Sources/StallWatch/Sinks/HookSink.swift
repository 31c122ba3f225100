import StallReports

/// Calls the app's closures when stalls begin, end and escalate, whether or not they are reported.
final class HookSink: Sink {
    /// The app's closures.
    struct Hooks: Sendable {
        var began: (@Sendable (StallReport) -> Void)?
        var ended: (@Sendable (StallReport) -> Void)?
        var escalated: (@Sendable (StallReport) -> Void)?

        var isEmpty: Bool { began == nil && ended == nil && escalated == nil }
    }
    private let hooks: Hooks

    init(_ hooks: Hooks) {
        self.hooks = hooks
    }

    func take(_ delivery: Delivery) {
        switch delivery {
        case .began(let report): hooks.began?(report)
        case .ended(let report, _): hooks.ended?(report)
        case .escalated(let report): hooks.escalated?(report)
        default: break
        }
    }
}
