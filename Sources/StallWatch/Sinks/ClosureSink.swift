import StallReports

/// Calls the app's closure with each report.
final class ClosureSink: Sink {
    private let body: @Sendable (StallReport) throws -> Void

    init(_ body: @escaping @Sendable (StallReport) throws -> Void) {
        self.body = body
    }

    func take(_ delivery: Delivery) throws(StallWatchError) {
        switch delivery {
        case .ended(let report, nil), .recovered(let report):
            do {
                try body(report)
            } catch {
                throw StallWatchError(.failedSink, "the app's sink threw an error: \(error)")
            }
        default:
            break
        }
    }
}

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
