import NIOHTTP1
import Tracing

/// Passes the header `traceparent` on, in place of a tracer.
struct TraceParent: Instrument {
    private enum Key: ServiceContextKey {
        typealias Value = String
    }

    private static let header = "traceparent"

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        context[Key.self] = extractor.extract(key: Self.header, from: carrier)
    }

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let value = context[Key.self] else { return }
        injector.inject(value, forKey: Self.header, into: &carrier)
    }
}

/// Reads the headers of NIO's requests.
private struct HeadersExtractor: Extractor {
    func extract(key: String, from headers: HTTPHeaders) -> String? { headers.first(name: key) }
}

/// Returns the context of the span that a request belongs to.
func span(of head: HTTPRequestHead) -> ServiceContext {
    var context = ServiceContext.topLevel
    InstrumentationSystem.instrument.extract(head.headers, into: &context, using: HeadersExtractor())
    return context
}
