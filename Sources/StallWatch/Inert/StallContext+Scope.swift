/// Calls a function that does not suspend, with a context for the reports of its stalls.
///
/// Off Linux there are no reports: the context is only the value of ``StallContext/current`` meanwhile.
///
/// - Parameters:
///   - context: The context.
///   - body: The function.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
public func withStallContext<Result>(_ context: StallContext, body: () throws -> Result) rethrows -> Result {
    try StallContext.$current.withValue(context, operation: body)
}

/// Calls a function that does not suspend, with a new context for the reports of its stalls.
///
/// - Parameters:
///   - label: What is being worked on: see ``StallContext/init(_:_:traceID:spanID:)``.
///   - attributes: More about it.
///   - body: The function.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
public func withStallContext<Result>(
    _ label: String, _ attributes: [String: String] = [:], body: () throws -> Result
) rethrows -> Result {
    try withStallContext(StallContext(label, attributes), body: body)
}

/// Implements `stallwatch_push_context` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_push_context")
public func stallwatchPushContext(
    _ label: UnsafePointer<CChar>?, _ traceID: UnsafePointer<CChar>?, _ spanID: UnsafePointer<CChar>?
) {}

/// Implements `stallwatch_pop_context` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_pop_context")
public func stallwatchPopContext() {}
