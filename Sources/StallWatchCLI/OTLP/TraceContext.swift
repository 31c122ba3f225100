import StallReports

/// The trace and the span that a stall belongs to, from its context, else from the report's metadata.
struct TraceContext: Sendable, Hashable {
    /// The keys of the metadata, named as in logs that are not OTLP.
    static let traceKey = "trace_id"
    static let spanKey = "span_id"

    /// 16 bytes, or none.
    var traceID: [UInt8]
    /// 8 bytes, or none.
    var spanID: [UInt8]

    /// Finds the ids of a report.
    ///
    /// A trace is never taken from one place and its span from another.
    init(_ report: StallReport) {
        let context = report.context.flatMap { $0.traceID == nil ? nil : $0 }
        self.init(
            trace: context == nil ? report.metadata[Self.traceKey] : context?.traceID,
            span: context == nil ? report.metadata[Self.spanKey] : context?.spanID)
    }

    init(metadata: [String: String]) {
        self.init(trace: metadata[Self.traceKey], span: metadata[Self.spanKey])
    }

    private init(trace: String?, span: String?) {
        traceID = Self.identifier(trace, bytes: 16)
        spanID = Self.identifier(span, bytes: 8)
    }

    /// The bytes of a hexadecimal id; none if it is not one, or all zeros, which W3C's Trace Context forbids.
    private static func identifier(_ text: String?, bytes: Int) -> [UInt8] {
        // Not by UInt8(_:radix:), which accepts a sign.
        let digits = (text ?? "").utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count == 2 * bytes, !digits.contains(nil) else { return [] }
        let values = digits.compactMap { $0.map(UInt8.init) }
        let identifier = stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
        return identifier.contains { $0 != 0 } ? identifier : []
    }
}
