/// What the watchdog found about all loops in one pass.
struct ProgressReading: Sendable, Equatable {
    /// The loops, one element per label.
    var loops: [LoopProgress]
    /// When the pass ended, in monotonic nanoseconds.
    var time: UInt64
    /// Whether the app has paused the monitor.
    var isPaused: Bool
}
