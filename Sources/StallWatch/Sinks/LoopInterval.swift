/// What the loops with one label did in an interval.
///
/// Durations are in seconds. Those of turns are upper bounds, at most 12.5 % too large.
struct LoopInterval: Sendable, Equatable {
    /// The durations of turns.
    struct Delay: Sendable, Equatable {
        var mean: Double
        var p50: Double
        var p90: Double
        var p99: Double
        var longest: Double
    }

    /// The loops' label.
    var label: String
    /// The number of turns that ended.
    var turns: UInt64
    /// The durations of these turns; `nil` if there were none.
    var delay: Delay?
    /// The part of the interval in which the busiest of the loops was in a turn, 0 to 1; `nil` for loops that do not report
    /// their turns.
    var utilization: Double?
    /// The longest threshold of the loops.
    var threshold: Double
}
