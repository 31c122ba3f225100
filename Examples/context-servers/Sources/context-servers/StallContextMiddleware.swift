import Hummingbird
import StallWatch
import Tracing

/// Gives the stalls of each request its route, and the ids of its span.
struct StallContextMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let route = "\(request.method) \(context.endpointPath ?? request.uri.path)"
        return try await StallContext.$current.withValue(StallContext(route, tracing: .current)) {
            try await next(request, context)
        }
    }
}

/// Reports each request that takes longer than a limit.
struct OverdueMiddleware<Context: RequestContext>: RouterMiddleware {
    let monitor: StallMonitor
    let limit: Duration

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let route = "\(request.method) \(context.endpointPath ?? request.uri.path)"
        return try await monitor.withLimit(limit, StallContext(route, tracing: .current)) {
            try await next(request, context)
        }
    }
}
