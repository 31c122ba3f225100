import StallReports

/// A request of OTLP with log records: the message `ExportLogsServiceRequest`.
///
/// Records stay in order; neighbors from the same process share their resource.
struct LogsRequest {
    private var groups: [(resource: OTLPAttributes, records: [[UInt8]])] = []
    private(set) var count = 0
    /// The number of bytes of all records, without their resources.
    private(set) var size = 0

    mutating func add(_ bytes: [UInt8], from resource: OTLPAttributes) {
        count += 1
        size += bytes.count
        if groups.last?.resource == resource {
            groups[groups.count - 1].records.append(bytes)
        } else {
            groups.append((resource, [bytes]))
        }
    }

    func bytes() -> [UInt8] {
        var writer = ProtobufWriter()
        for group in groups { writer.scope(of: group.resource, group.records) }
        return writer.bytes
    }
}

extension ProtobufWriter {
    /// A resource with the records that this tool has of it: the messages `ResourceLogs` and `ScopeLogs`, and those alike.
    mutating func scope(of resource: OTLPAttributes, _ records: [[UInt8]]) {
        message(1) { logs in
            logs.message(1) { resource.write(1, to: &$0) }
            logs.message(2) { scope in
                scope.message(1) {
                    $0.string(1, "stallwatch")
                    $0.string(2, StallWatchVersion.current)
                }
                for record in records { scope.data(2, record) }
            }
        }
    }
}

/// A log record of OpenTelemetry: the message `LogRecord` of logs.proto (opentelemetry-proto 1.10).
struct LogRecord: Sendable, Equatable {
    /// The severities that reports have, with their numbers.
    enum Severity: Int, Sendable {
        case warning = 13
        case error = 17

        fileprivate var text: String { self == .warning ? "WARN" : "ERROR" }
    }

    /// Nanoseconds since 1970.
    var time: UInt64
    var severity: Severity
    var body: String
    var attributes: OTLPAttributes
    var trace: TraceContext

    func bytes() -> [UInt8] {
        var writer = ProtobufWriter()
        writer.fixed(1, time)
        writer.number(2, severity.rawValue)
        writer.string(3, severity.text)
        writer.message(5) { $0.string(1, body) }
        attributes.write(6, to: &writer)
        if !trace.traceID.isEmpty { writer.data(9, trace.traceID) }
        if !trace.spanID.isEmpty { writer.data(10, trace.spanID) }
        // The time at which the record was first seen. The same for each try, so that repeated records are equal.
        writer.fixed(11, time)
        writer.string(12, Self.eventName)
        return writer.bytes
    }
}

extension LogRecord {
    static let eventName = "stallwatch.stall"

    private static let maximumFrames = 128
    private static let maximumStackBytes = 16 << 10

    /// A report as a log record, with the names of OpenTelemetry's semantic conventions (1.33 and later) where they have one.
    ///
    /// `log.record.uid` is the report's id: records with the same one are duplicates. `isAbandoned` means that the process
    /// is gone, whatever the report says.
    init(_ report: StallReport, isAbandoned: Bool = false) {
        let state = isAbandoned && report.state == .ongoing ? StallReport.State.abandoned : report.state
        let cause = report.cause
        var attributes = OTLPAttributes()
        attributes.set("log.record.uid", report.id)
        attributes.set("stallwatch.kind", report.kind.rawValue)
        attributes.set("stallwatch.state", state.rawValue)
        attributes.set("stallwatch.duration_ms", report.durationMilliseconds)
        attributes.set("stallwatch.threshold_ms", report.thresholdMilliseconds)
        attributes.set("stallwatch.fingerprint", report.fingerprint)
        attributes.set("stallwatch.repeats", report.repeats)
        attributes.set("stallwatch.repeated.total_ms", report.repeated?.totalMilliseconds)
        attributes.set("stallwatch.repeated.least_ms", report.repeated?.leastMilliseconds)
        attributes.set("stallwatch.repeated.greatest_ms", report.repeated?.greatestMilliseconds)
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
        attributes.set("exception.message", cause?.summary ?? report.activity?.sentence ?? report.headline)
        attributes.set("exception.stacktrace", Self.stackText(report))
        for (key, value) in report.metadata.sorted(by: { $0.key < $1.key })
        where ![TraceContext.traceKey, TraceContext.spanKey].contains(key) {
            attributes.set("stallwatch.metadata.\(key)", value)
        }
        for (key, value) in (report.context?.attributes ?? [:]).sorted(by: { $0.key < $1.key }) {
            attributes.set("stallwatch.context.attribute.\(key)", value)
        }
        self.init(
            time: report.startedAt.nanoseconds,
            severity: cause?.kind == .deadlock || state == .abandoned ? .error : .warning,
            body: report.headline, attributes: attributes, trace: TraceContext(report)
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

/// The trace and the span that a stall belongs to, from its context, else from the report's metadata.
struct TraceContext: Sendable, Hashable {
    /// The keys of the metadata, named as in logs that are not OTLP.
    static let traceKey = "trace_id"
    static let spanKey = "span_id"

    /// 16 bytes, or none.
    var traceID: [UInt8]
    /// 8 bytes, or none.
    var spanID: [UInt8]

    /// Finds the ids of a report, never a trace in one place and its span in another.
    init(_ report: StallReport) {
        let context = report.context.flatMap { $0.traceID == nil ? nil : $0 }
        let (trace, span) = (report.metadata[Self.traceKey], report.metadata[Self.spanKey])
        traceID = Self.identifier(context == nil ? trace : context?.traceID, bytes: 16)
        spanID = Self.identifier(context == nil ? span : context?.spanID, bytes: 8)
    }

    /// The bytes of a hexadecimal id; none if it is not one, or all zeros, which W3C's Trace Context forbids.
    private static func identifier(_ text: String?, bytes: Int) -> [UInt8] {
        text.flatMap { ContextPayload.identifier($0, byteCount: bytes) } ?? []
    }
}
