import StallReports

extension LogRecord {
    /// The event name of every report.
    static let stallEvent = "stallwatch.stall"

    /// The bounds of a stack's text.
    private static let maximumFrames = 128
    private static let maximumStackBytes = 16 << 10

    /// A report as a log record, with the names of OpenTelemetry's semantic conventions (1.33 and later) where they have one.
    ///
    /// `log.record.uid` is the report's id: records with the same one are duplicates.
    ///
    /// - Parameters:
    ///   - report: The report.
    ///   - isAbandoned: Whether the process is gone, whatever the report says.
    init(_ report: StallReport, isAbandoned: Bool = false) {
        let state = isAbandoned && report.state == .ongoing ? StallReport.State.abandoned : report.state
        let cause = report.cause
        let trace = TraceContext(report)
        var attributes = OTLPAttributes()
        attributes.set("log.record.uid", report.id)
        attributes.set("stallwatch.kind", report.kind.rawValue)
        attributes.set("stallwatch.state", state.rawValue)
        attributes.set("stallwatch.duration_ms", report.durationMilliseconds)
        attributes.set("stallwatch.threshold_ms", report.thresholdMilliseconds)
        attributes.set("stallwatch.fingerprint", report.fingerprint)
        attributes.set("stallwatch.repeats", report.repeats)
        attributes.set("stallwatch.loop.label", report.loop.label)
        attributes.set("stallwatch.loop.kind", report.loop.kind.rawValue)
        attributes.set("stallwatch.callout", report.callout?.rawValue)
        attributes.set("thread.id", report.loop.thread.map { Int($0.id) })
        attributes.set("thread.name", report.loop.thread?.name)
        attributes.set("stallwatch.context.label", report.context?.label)
        attributes.set("stallwatch.task.id", report.context?.taskID.map { Int(clamping: $0) })
        attributes.set("stallwatch.task.name", report.context?.taskName)
        attributes.set("stallwatch.cause", (cause?.kind ?? .unknown).rawValue)
        attributes.set("stallwatch.cause.confidence", cause?.confidence.rawValue)
        attributes.set("stallwatch.on_cpu_ms", cause?.onCPUMilliseconds)
        attributes.set("stallwatch.run_queue_ms", cause?.runQueueMilliseconds)
        attributes.set("stallwatch.blocked_ms", cause?.blockedMilliseconds)
        attributes.set("code.function.name", report.culprit?.function)
        attributes.set("code.file.path", report.culprit?.file)
        attributes.set("code.line.number", report.culprit?.line)
        attributes.set("stallwatch.image", report.culprit?.image)
        attributes.set("exception.type", "stallwatch.\(report.kind.rawValue)")
        attributes.set("exception.message", cause?.summary ?? report.summary)
        attributes.set("exception.stacktrace", Self.stackText(report))
        for (key, value) in report.metadata.sorted(by: { $0.key < $1.key })
        where ![TraceContext.traceKey, TraceContext.spanKey].contains(key) {
            attributes.set("stallwatch.metadata.\(key)", value)
        }
        for (key, value) in (report.context?.attributes ?? [:]).sorted(by: { $0.key < $1.key }) {
            attributes.set("stallwatch.context.attribute.\(key)", value)
        }
        self.init(
            time: UInt64(clamping: report.startedAt.microsecondsSince1970) &* 1_000,
            severity: cause?.kind == .deadlock || state == .abandoned ? .error : .warning,
            eventName: Self.stallEvent, body: report.summary, attributes: attributes,
            traceID: trace.traceID, spanID: trace.spanID
        )
    }

    /// The stack that most of the time was spent in: a line per frame, innermost first; `nil` if there is none.
    private static func stackText(_ report: StallReport) -> String? {
        let shares = report.sampleShares
        let best = report.samples.indices.filter { report.samples[$0].isValid && report.samples[$0].stack != nil }
            .max { shares[$0] < shares[$1] }
        guard let stack = best.flatMap({ report.samples[$0].stack }) else { return nil }
        var text = ""
        for frame in report.stacks[stack].prefix(maximumFrames).map({ report.frames[$0] }) {
            let image = frame.image.map { report.images[$0].name } ?? ""
            var line = "at " + (frame.function ?? "\(image)+\(frame.offset)")
            if let file = frame.file {
                line += " (\(file)" + (frame.line.map { ":\($0)" } ?? "") + ")"
            } else if frame.function != nil, !image.isEmpty {
                line += " (\(image))"
            }
            guard text.utf8.count + line.utf8.count < maximumStackBytes else { break }
            text += line + "\n"
        }
        return text
    }
}
