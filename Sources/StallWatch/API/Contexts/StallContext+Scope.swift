internal import CLinux

/// Calls a function that does not suspend, with a context for the reports of its stalls.
///
/// ```swift
/// withStallContext("import") {
///     importEverything()
/// }
/// ```
///
/// For event loops, run loops, games, and threads without Swift concurrency. It is also the value of
/// ``StallContext/current`` meanwhile, so that a `Task { }` of `body` inherits it. Scopes may be nested; the innermost
/// one counts.
///
/// The report has the context on every system, also where a task's values cannot be read.
///
/// - Parameters:
///   - context: The context; create it once if the scope is entered often.
///   - body: The function.
/// - Returns: The result of `body`.
/// - Throws: The error of `body`.
public func withStallContext<Result>(_ context: StallContext, body: () throws -> Result) rethrows -> Result {
    try StallContext.$current.withValue(context) {
        let address = context.storage.address
        return try withUnsafeTemporaryAllocation(of: clinux_scope.self, capacity: 1) { scope in
            // The buffer has a base address, because its capacity is not 0.
            guard let scope = scope.baseAddress else { return try body() }
            clinux_enter_scope(scope, address, address, nil)
            defer { clinux_leave_scope(scope) }
            return try body()
        }
    }
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

/// Implements `stallwatch_push_context` of `CStallWatch.h`.
@_cdecl("stallwatch_push_context")
public func stallwatchPushContext(
    _ label: UnsafePointer<CChar>?, _ traceID: UnsafePointer<CChar>?, _ spanID: UnsafePointer<CChar>?
) {
    let context = StallContext(label: label, traceID: traceID, spanID: spanID)
    let scope = UnsafeMutablePointer<clinux_scope>.allocate(capacity: 1)
    scope.initialize(to: clinux_scope())
    clinux_enter_scope(
        scope, context.storage.address, StallContext.current?.storage.address ?? 0,
        Unmanaged.passRetained(context.storage).toOpaque()
    )
}

/// Implements `stallwatch_pop_context` of `CStallWatch.h`.
@_cdecl("stallwatch_pop_context")
public func stallwatchPopContext() {
    // Only a scope that C code has pushed has an owner.
    guard let scope = clinux_innermost_scope(), let owner = scope.pointee.owner else { return }
    clinux_leave_scope(scope)
    scope.deallocate()
    Unmanaged<ContextStorage>.fromOpaque(owner).release()
}
