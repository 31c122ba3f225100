/// The trace and the span that a stall belongs to, from a report's metadata.
struct TraceContext: Sendable, Hashable {
    /// The keys of the metadata, named as in logs that are not OTLP.
    static let traceKey = "trace_id"
    static let spanKey = "span_id"

    /// 16 bytes, or none.
    var traceID: [UInt8]
    /// 8 bytes, or none.
    var spanID: [UInt8]

    init(metadata: [String: String]) {
        traceID = Self.identifier(metadata[Self.traceKey], bytes: 16)
        spanID = Self.identifier(metadata[Self.spanKey], bytes: 8)
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
