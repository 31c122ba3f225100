/// The threads whose stacks explain a stall.
enum CaptureTarget: Sendable, Equatable {
    /// The thread that runs the loop.
    case thread(Int32)
    /// All threads of a pool.
    case pool
    /// No thread, because none has run the loop yet.
    case unknown
}
