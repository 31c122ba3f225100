/// A probe that does nothing, because StallWatch supports Linux only.
public final class LoopProbe: Sendable {
    /// The loop's name in reports.
    public let label: String

    /// Creates a probe.
    ///
    /// - Parameter label: The loop's name in reports.
    public init(label: String) {
        self.label = label
    }

    /// Does nothing.
    public func beginTurn() {}

    /// Does nothing.
    public func endTurn() {}

    /// The pointer that the functions of `CStallWatch.h` take.
    ///
    /// It is valid for as long as the probe exists.
    public var handle: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
}

/// Implements `stallwatch_begin_turn` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_begin_turn")
public func stallwatchBeginTurn(_ handle: UnsafeMutableRawPointer?) {}

/// Implements `stallwatch_end_turn` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_end_turn")
public func stallwatchEndTurn(_ handle: UnsafeMutableRawPointer?) {}

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

/// Implements `stallwatch_push_context` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_push_context")
public func stallwatchPushContext(
    _ label: UnsafePointer<CChar>?, _ traceID: UnsafePointer<CChar>?, _ spanID: UnsafePointer<CChar>?
) {}

/// Implements `stallwatch_pop_context` of `CStallWatch.h`, and does nothing.
@_cdecl("stallwatch_pop_context")
public func stallwatchPopContext() {}
