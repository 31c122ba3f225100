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
