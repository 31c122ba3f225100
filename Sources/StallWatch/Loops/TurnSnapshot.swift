/// What a loop was doing at one moment.
struct TurnSnapshot: Equatable {
    /// When the current turn began, in nanoseconds of the monotonic clock; `nil` while the loop waits or is not running.
    var began: UInt64?
    /// The number of the current turn, or of the last one between turns.
    ///
    /// The first is 1.
    var number: UInt64
    /// 0 in the outermost run of the loop, 1 in a run that a callout of it made, and so on.
    var nesting: Int
    /// When the loop last left a wait, in nanoseconds of the monotonic clock; 0 while it waits.
    var leftWait: UInt64 = 0
    /// The number of the mode that the innermost run is in; 0 if that mode was not named.
    var mode: UInt8 = 0
    /// Whether the turn is the time between two runs of the loop.
    var isGap = false
    /// The run loop says that it waits, though no observer has seen it go to wait: a nested run in an unwatched mode.
    var isWaitingUnobserved = false
}
