/// Reports the turns of a loop that a monitor cannot observe by itself, such as GLib, libuv, SDL, Qt or a game loop.
///
/// ```swift
/// let probe = LoopProbe(label: "game")
/// try monitor.watch(.probe(probe))
/// while running {
///     probe.beginTurn()
///     handleEvents(); update(); draw()
///     probe.endTurn()          // before it waits for the next event or frame
///     waitForNextFrame()
/// }
/// ```
///
/// A pair of calls costs two clock reads and a few atomic stores. It takes no lock and allocates nothing. It makes a
/// system call only to learn a new thread's id, or to wake the watchdog: for the first turn after all loops have
/// waited, and when a stall ends. Loops in C and C++ call the functions of `CStallWatch.h` with the probe's ``handle``.
public final class LoopProbe: Sendable {
    /// The loop's name in reports.
    public let label: String
    let turns: ProbeTurns

    /// Creates a probe.
    ///
    /// Its calls do nothing until a monitor watches it.
    ///
    /// - Parameter label: The loop's name in reports.
    public convenience init(label: String) { self.init(label: label, turns: ProbeTurns()) }

    init(label: String, turns: consuming ProbeTurns) {
        self.label = label
        self.turns = turns
    }

    /// Begins a turn when the loop has left its wait.
    ///
    /// If the previous turn has not ended, it ends here.
    ///
    /// Call it on the loop's own thread only.
    public func beginTurn() { turns.begin() }

    /// Ends the turn when the loop is about to wait.
    ///
    /// Does nothing if no turn has begun. Call it on the loop's own thread only.
    public func endTurn() { turns.end() }

    /// The pointer that the functions of `CStallWatch.h` take.
    ///
    /// It is valid for as long as the probe exists.
    public var handle: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }
}

#if !os(Linux) || STALLWATCH_INERT
    struct ProbeTurns: ~Copyable, Sendable {
        func begin() {}
        func end() {}
    }
#endif

// MARK: - The functions of CStallWatch.h

@_cdecl("stallwatch_begin_turn")
package func stallwatchBeginTurn(_ handle: UnsafeMutableRawPointer?) {
    guard let handle else { return }
    Unmanaged<LoopProbe>.fromOpaque(handle)._withUnsafeGuaranteedRef { $0.beginTurn() }
}

@_cdecl("stallwatch_end_turn")
package func stallwatchEndTurn(_ handle: UnsafeMutableRawPointer?) {
    guard let handle else { return }
    Unmanaged<LoopProbe>.fromOpaque(handle)._withUnsafeGuaranteedRef { $0.endTurn() }
}

@_cdecl("stallwatch_push_context")
package func stallwatchPushContext(
    _ label: UnsafePointer<CChar>?, _ traceID: UnsafePointer<CChar>?, _ spanID: UnsafePointer<CChar>?
) {
    #if os(Linux) && !STALLWATCH_INERT
        StallContext(label: label, traceID: traceID, spanID: spanID).pushScope()
    #endif
}

@_cdecl("stallwatch_pop_context")
package func stallwatchPopContext() {
    #if os(Linux) && !STALLWATCH_INERT
        StallContext.popScope()
    #endif
}
