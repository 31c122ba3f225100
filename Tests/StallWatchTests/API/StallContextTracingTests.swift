import Testing

@testable import StallWatch

@Suite struct PropagatedSpanTests {
    private let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private let span = "00f067aa0ba902b7"

    @Test func `the ids are found in each kind of header`() {
        let headers: [[String: String]] = [
            ["traceparent": "00-\(trace)-\(span)-01"], ["traceparent": "cc-\(trace)-\(span)-01-later"],
            ["b3": "\(trace)-\(span)"], ["b3": "\(trace)-\(span)-1-05e3ac9a4f6e3b90"],
            ["x-b3-traceid": trace, "x-b3-spanid": span, "x-b3-sampled": "1"],
        ]
        for headers in headers {
            let found = PropagatedSpan(headers: headers)
            #expect(found?.traceID == trace && found?.spanID == span, "\(headers)")
        }
        let short = PropagatedSpan(headers: ["b3": "a3ce929d0e0e4736-\(span)"])
        #expect(short?.traceID == "0000000000000000a3ce929d0e0e4736")
    }

    @Test func `other headers have none`() {
        for headers in [[:], ["traceparent": ""], ["b3": "0"], ["x-b3-traceid": trace], ["uber-trace-id": trace]] {
            #expect(PropagatedSpan(headers: headers) == nil, "\(headers)")
        }
        // What is in the place of an id and is none, the context ignores.
        let odd = PropagatedSpan(headers: ["traceparent": "00-not-an-id"])
        #expect(StallContext("x", traceID: odd?.traceID, spanID: odd?.spanID).traceID == nil)
    }
}

#if Tracing
    import Tracing

    @Suite struct StallContextTracingTests {
        /// Injects a header if the context has a span.
        private struct HeaderTracer: Instrument {
            func extract<Carrier, Extract: Extractor>(
                _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
            ) where Extract.Carrier == Carrier {}

            func inject<Carrier, Inject: Injector>(
                _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
            ) where Inject.Carrier == Carrier {
                guard let span = context[SpanKey.self] else { return }
                injector.inject("00-4bf92f3577b34da6a3ce929d0e0e4736-\(span)-01", forKey: "TraceParent", into: &carrier)
            }
        }

        private enum SpanKey: ServiceContextKey {
            typealias Value = String
        }

        @Test func `a context has the ids of the span`() {
            var service = ServiceContext.topLevel
            service[SpanKey.self] = "00f067aa0ba902b7"
            let context = StallContext("GET /feed", ["a": "1"], tracing: service, instrument: HeaderTracer())
            #expect(context.label == "GET /feed" && context.attributes == ["a": "1"])
            #expect(context.traceID == "4bf92f3577b34da6a3ce929d0e0e4736" && context.spanID == "00f067aa0ba902b7")
        }

        @Test func `without a span or a tracer there are none`() {
            #expect(StallContext("x", [:], tracing: .topLevel, instrument: HeaderTracer()).traceID == nil)
            #expect(StallContext("x", [:], tracing: nil, instrument: HeaderTracer()).traceID == nil)
            #expect(StallContext("x", tracing: .topLevel).traceID == nil)
        }
    }
#endif
