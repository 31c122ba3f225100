internal import Logging
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

/// Writes each reported stall to swift-log, as one line at level info.
final class LogSink: Sink {
    private let logger: Logger

    init(_ logger: Logger) {
        self.logger = logger
    }

    func take(_ delivery: Delivery) {
        switch delivery {
        case .ended(let report, nil):
            logger.info("\(report.summary)", metadata: Self.metadata(of: report))
        case .recovered(let report):
            logger.info("an earlier process left a report: \(report.summary)", metadata: Self.metadata(of: report))
        case .notice(let message, let metadata):
            logger.info("\(message)", metadata: metadata.mapValues { "\($0)" })
        default:
            break
        }
    }

    static func metadata(of report: StallReport) -> Logger.Metadata {
        var metadata: Logger.Metadata = [
            "report": "\(report.id)",
            "kind": "\(report.kind.rawValue)",
            "state": "\(report.state.rawValue)",
            "loop": "\(report.loop.label)",
            "durationMilliseconds": "\(report.durationMilliseconds)",
            "thresholdMilliseconds": "\(report.thresholdMilliseconds)",
            "repeats": "\(report.repeats)",
        ]
        if let fingerprint = report.fingerprint { metadata["fingerprint"] = "\(fingerprint)" }
        if let callout = report.callout { metadata["callout"] = "\(callout.rawValue)" }
        if let culprit = report.culprit { metadata["culprit"] = "\(culprit.function)" }
        return metadata
    }
}
