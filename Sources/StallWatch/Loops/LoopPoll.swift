/// The state of a loop, as the watchdog reads it in one poll.
struct LoopPoll {
    /// The current turn, or the last one between turns.
    var turn: TurnSnapshot
    /// The threads whose stacks explain a stall that is in progress now.
    var target: CaptureTarget
    /// The name of the mode that the loop runs in; `nil` if it has none or the app did not name it.
    var mode: String?
    /// The time by which the turn may have begun earlier, in nanoseconds; `nil` for a loop that reports its own turns.
    var startUncertainty: UInt64?
    /// The address range of the function that has one frame on the stack per run of the loop; empty if it is unknown.
    var runFunction: Range<UInt64>
    /// When the next heartbeat is due, in monotonic nanoseconds; `nil` for a loop that reports its own turns.
    var nextHeartbeat: UInt64?

    /// Returns whether a stack shows more runs of the loop than the observers have seen begin.
    ///
    /// - Parameter addresses: The stack's addresses.
    /// - Returns: `true` if the stack has more frames of ``runFunction`` than the turn has observed runs.
    func showsUnobservedRun(_ addresses: some Sequence<UInt64>) -> Bool {
        var runs = 0
        for address in addresses where runFunction.contains(address) { runs += 1 }
        return runs > turn.nesting + 1
    }
}
