/// What the watchdog learns of a loop each time that it polls it.
struct LoopPoll {
    /// The turn that is on, or the last one.
    var turn: TurnSnapshot
    /// The threads whose stacks explain a stall that lasts now.
    var target: CaptureTarget
    /// The name of the mode that the loop runs in; `nil` if it has none or the app did not name it.
    var mode: String?
    /// By how much the turn may have begun earlier, in nanoseconds; `nil` for a loop that reports its own turns.
    var startUncertainty: UInt64?
    /// The code that has one frame on the stack for each run of the loop; empty if it is not known.
    var runFunction: Range<UInt64>
    /// When the next heartbeat is due, in monotonic nanoseconds; `nil` for a loop that reports its own turns.
    var nextHeartbeat: UInt64?

    /// Whether a stack shows more runs of the loop than observers have seen being entered.
    ///
    /// - Parameter addresses: The stack's addresses.
    func showsUnobservedRun(_ addresses: some Sequence<UInt64>) -> Bool {
        var runs = 0
        for address in addresses where runFunction.contains(address) { runs += 1 }
        return runs > turn.nesting + 1
    }
}

/// The threads whose stacks explain a stall.
enum CaptureTarget: Sendable, Equatable {
    /// The one thread that runs the loop.
    case thread(Int32)
    /// Every worker of a pool.
    case pool
    /// No thread has been seen yet.
    case unknown
}
