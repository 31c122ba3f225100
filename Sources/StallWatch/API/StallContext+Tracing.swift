#if Tracing
    import StallReports
    public import Tracing

    extension StallContext {
        /// Creates a context with the ids of the current span of swift-distributed-tracing.
        ///
        /// The ids are those that the tracer would send to another service: it is asked to inject its headers, of which
        /// `traceparent` (W3C Trace Context) and B3 are understood. Without a span, or with other headers, the context
        /// has no ids.
        ///
        /// - Parameters:
        ///   - label: What is being worked on: see ``init(_:_:traceID:spanID:)``.
        ///   - attributes: More about it.
        ///   - context: The context of a span; `nil` for none. The default is that of the current task.
        public init(
            _ label: String, _ attributes: [String: String] = [:], tracing context: ServiceContext? = .current
        ) {
            self.init(label, attributes, tracing: context, instrument: InstrumentationSystem.instrument)
        }

        init(
            _ label: String, _ attributes: [String: String], tracing context: ServiceContext?,
            instrument: any Instrument
        ) {
            var headers: [String: String] = [:]
            if let context { instrument.inject(context, into: &headers, using: HeaderInjector()) }
            let span = PropagatedSpan(headers: headers)
            self.init(label, attributes, traceID: span?.traceID, spanID: span?.spanID)
        }
    }

    private struct HeaderInjector: Injector {
        func inject(_ value: String, forKey key: String, into headers: inout [String: String]) {
            headers[key.lowercased()] = value
        }
    }
#endif

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
