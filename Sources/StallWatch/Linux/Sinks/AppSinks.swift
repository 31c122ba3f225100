internal import Logging
import StallReports

struct ClosureSink: Sink {
    let body: @Sendable (StallReport) throws -> Void

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
struct HookSink: Sink, Sendable {
    var event: (@Sendable (StallEvent) -> Void)?
    var escalated: (@Sendable (StallReport) -> Void)?

    var isEmpty: Bool { event == nil && escalated == nil }

    func take(_ delivery: Delivery) {
        switch delivery {
        case .began(let report): event?(.began(report))
        case .ended(let report, _): event?(.ended(report))
        case .escalated(let report): escalated?(report)
        default: break
        }
    }
}

/// Writes each reported stall to swift-log, as one line: a warning, or an error if the loop may not come back.
final class LogSink: Sink {
    private let logger: Logger
    /// The directory with the reports; `nil` if there is none.
    private let directory: String?
    /// The ids of deadlocks that are logged and last.
    private var deadlocks: Set<String> = []

    init(_ logger: Logger, directory: String? = nil) {
        self.logger = logger
        self.directory = directory
    }

    func take(_ delivery: Delivery) {
        switch delivery {
        case .began(let report), .updated(let report):
            // The end of a deadlock, which is logged otherwise, may never come. The first report may lack its names.
            guard report.cause?.kind == .deadlock, report.fingerprint != nil, report.state == .ongoing,
                deadlocks.insert(report.id).inserted
            else { return }
            log(report)
        case .ended(let report, nil):
            deadlocks.remove(report.id)
            log(report)
        case .escalated(let report):
            log(report, "overdue: ")
        case .recovered(let report):
            log(report, "an earlier process left a report: ")
        case .notice(let message, let metadata):
            logger.info("\(message)", metadata: metadata.mapValues { "\($0)" })
        default:
            break
        }
    }

    private func log(_ report: StallReport, _ prefix: String = "") {
        var metadata = Self.metadata(of: report)
        if let directory { metadata["path"] = "\(directory)/\(report.fileName)" }
        logger.log(level: Self.level(of: report), "\(prefix)\(Self.message(of: report))", metadata: metadata)
    }

    /// An error for a deadlock, and for a stall whose end the monitor has not seen: it is overdue, or the process died.
    static func level(of report: StallReport) -> Logger.Level {
        report.cause?.kind == .deadlock || report.state != .ended ? .error : .warning
    }

    static func message(of report: StallReport) -> String {
        report.summary + (report.advice.map { " Try: \($0.text)" } ?? "")
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
        if let culprit = report.culprit {
            metadata["culprit"] = "\(culprit.function)"
            if let file = culprit.file { metadata["file"] = "\(file)\(culprit.line.map { ":\($0)" } ?? "")" }
        }
        if let cause = report.cause { metadata["cause"] = "\(cause.kind.rawValue)" }
        return metadata
    }
}
