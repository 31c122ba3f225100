/// The ids of a span in the headers by which tracers propagate it.
struct PropagatedSpan: Equatable {
    /// The id of the trace, as 32 hexadecimal digits.
    let traceID: String
    /// The id of the span, as 16 hexadecimal digits.
    let spanID: String

    /// Reads the ids; `nil` if there are none.
    ///
    /// - Parameter headers: The headers, with lowercase names: `traceparent` (W3C Trace Context, `version-trace-span-flags`),
    ///   `b3` (`trace-span-…`), or `x-b3-traceid` and `x-b3-spanid`. B3's trace ids may have 16 digits.
    init?(headers: [String: String]) {
        if let parts = headers["traceparent"]?.split(separator: "-"), parts.count >= 4 {
            self.init(parts[1], parts[2])
        } else if let parts = headers["b3"]?.split(separator: "-"), parts.count >= 2 {
            self.init(parts[0], parts[1])
        } else if let trace = headers["x-b3-traceid"], let span = headers["x-b3-spanid"] {
            self.init(trace[...], span[...])
        } else {
            return nil
        }
    }

    private init(_ trace: Substring, _ span: Substring) {
        traceID = String(repeating: "0", count: trace.utf8.count == 16 ? 16 : 0) + trace
        spanID = String(span)
    }
}
