/// The state of a loop at one moment.
struct TurnSnapshot: Equatable {
    /// When the current turn began, in monotonic nanoseconds; `nil` while the loop waits or does not run.
    var began: UInt64?
    /// The number of the current turn, or of the last one between turns.
    ///
    /// The first turn has the number 1.
    var number: UInt64
    /// The number of runs of the same loop around the current one; 0 in the outermost run.
    var nesting: Int
    /// When the loop last left a wait, in monotonic nanoseconds; 0 while it waits.
    var leftWait: UInt64 = 0
    /// The number of the innermost run's mode; 0 if the mode has no name.
    var mode: UInt8 = 0
    /// Whether the turn is the time between two runs of the loop.
    var isGap = false
    /// Whether the run loop waits although no observer has seen the wait begin, as in a nested run in an unwatched
    /// mode.
    var isWaitingUnobserved = false
}
