import StallReports
internal import Logging

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
