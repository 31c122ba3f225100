import StallReports

/// The properties of a sink that its worker thread uses.
struct SinkDescription: Sendable {
    /// The thread's name; at most 15 bytes.
    var name: String
    /// The kinds of deliveries that the sink receives.
    var interest: Delivery.Interest
    /// Whether failed deliveries are retried, and a newer delivery replaces a queued one of the same report.
    ///
    /// True for files, where only the newest state counts. False for code that may have done half of its work.
    var isStore = false
    /// The least length of the intervals that the sink receives, in nanoseconds; `nil` if it receives none.
    var intervalLength: UInt64?
    /// The file that cannot be flushed to the disk, with the reason; `nil` if all can.
    var unflushed: String?
    /// Creates the sink; called on the sink's thread.
    var make: @Sendable () -> any Sink
}
