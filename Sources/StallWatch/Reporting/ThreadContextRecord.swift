import StallReports

/// OpenTelemetry's thread context record, which a tracer publishes for the thread's active span.
///
/// The layout is that of OTEP 4947: 16 bytes of the trace id, 8 of the span id, a mark that it is valid, the trace flags,
/// and attributes, whose names are not in the record.
struct ThreadContextRecord: Equatable {
    /// The id of the trace, as 32 hexadecimal digits; `nil` if no span is active.
    let traceID: String?
    /// The id of the span, as 16 hexadecimal digits; `nil` if no span is active.
    let spanID: String?

    private static let traceBytes = 0..<16
    private static let spanBytes = 16..<24
    private static let validByte = 24
    private static let headByteCount = 28

    /// Reads a copy of a record; `nil` if it is too short or not valid.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headByteCount, bytes[Self.validByte] == 1 else { return nil }
        let (trace, span) = (bytes[Self.traceBytes], bytes[Self.spanBytes])
        let isActive = trace.contains { $0 != 0 } && span.contains { $0 != 0 }
        traceID = isActive ? hexadecimal(trace) : nil
        spanID = isActive ? hexadecimal(span) : nil
    }
}
