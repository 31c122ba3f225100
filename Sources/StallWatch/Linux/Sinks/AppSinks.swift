internal import Logging
import StallReports

struct ClosureSink: Sink {
    let body: @Sendable (StallReport) throws -> Void

    func receive(_ delivery: Delivery) throws(StallWatchError) {
        guard let report = delivery.report else { return }
        do {
            try body(report)
        } catch {
            throw StallWatchError(.failedSink, "the app's sink threw an error: \(error)")
        }
    }
}

/// Calls the app's closures when stalls begin, end and escalate, whether or not they are reported.
struct HookSink: Sink, Sendable {
    var event: (@Sendable (StallEvent) -> Void)?
    var escalated: (@Sendable (StallReport) -> Void)?

    var isEmpty: Bool { event == nil && escalated == nil }

    func receive(_ delivery: Delivery) {
        guard let report = delivery.report else { return }
        switch delivery.event {
        case .began: event?(.began(report))
        case .ended, .suppressed: event?(.ended(report))
        case .escalated: escalated?(report)
        default: break
        }
    }
}

/// Writes each reported stall to swift-log, with why and what to try on lines of their own: a warning, or an error if the
/// loop may not come back.
final class LogSink: Sink {
    private let logger: Logger
    /// The directory with the reports; `nil` if there is none.
    private let directory: String?
    private var deadlocks: Set<String> = []
    /// The most deadlocks that are remembered: the end of one may be lost, or not reported.
    private static let maximumDeadlocks = 1_024

    init(_ logger: Logger, directory: String? = nil) {
        self.logger = logger
        self.directory = directory
    }

    func receive(_ delivery: Delivery) {
        guard let report = delivery.report else {
            let metadata = delivery.metadata.mapValues { Logger.MetadataValue.string($0.withoutControls) }
            return logger.info("\(delivery.message.withoutControls)", metadata: metadata)
        }
        switch delivery.event {
        case .began, .updated:
            // The end of a deadlock, which is logged otherwise, may never come. The first report may lack its names.
            guard report.cause?.kind == .deadlock, report.fingerprint != nil, report.state == .ongoing,
                deadlocks.insert(report.id).inserted
            else { return }
            if deadlocks.count > Self.maximumDeadlocks { deadlocks = [report.id] }
            log(report)
        case .ended:
            deadlocks.remove(report.id)
            log(report)
        case .escalated:
            log(report, "overdue: ")
        case .recovered:
            log(report, "an earlier process left a report: ")
        default:
            break
        }
    }

    private func log(_ report: StallReport, _ prefix: String = "") {
        var metadata = Self.metadata(of: report)
        if let directory { metadata["path"] = "\(directory)/\(report.fileName)" }
        metadata = metadata.mapValues { .string("\($0)".withoutControls) }
        logger.log(level: Self.level(of: report), "\(prefix)\(report.summary)", metadata: metadata)
    }

    /// An error for a deadlock, and for a stall whose end the monitor has not seen: it is overdue, or the process died.
    static func level(of report: StallReport) -> Logger.Level {
        report.cause?.kind == .deadlock || report.state != .ended ? .error : .warning
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
        if report.cause != nil || report.activity != nil { metadata["cause"] = "\(report.causeWord)" }
        return metadata
    }
}
