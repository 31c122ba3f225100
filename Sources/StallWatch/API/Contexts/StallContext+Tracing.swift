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

        /// Creates a context with the ids that an instrument injects.
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

    /// Collects headers, with lowercase names.
    private struct HeaderInjector: Injector {
        func inject(_ value: String, forKey key: String, into headers: inout [String: String]) {
            headers[key.lowercased()] = value
        }
    }
#endif
