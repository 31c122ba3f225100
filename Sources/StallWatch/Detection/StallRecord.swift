/// The raw facts of one stall, as the watchdog hands them on: addresses without names, nanoseconds.
struct StallRecord: Sendable {
    /// One stack taken while the stall lasted, or why there is none.
    struct Sample: Sendable {
        /// How old the turn was, in nanoseconds.
        var age: UInt64
        /// Whether the same turn was running before and after.
        var isValid: Bool
        var stack: Result<CapturedStack, CaptureError>
        /// The images that were mapped then.
        var images: ImageList
    }

    /// The stack of a thread that is not the loop's.
    struct OtherThread: Sendable {
        var thread: StallReport.ThreadDescription
        var stack: Result<CapturedStack, CaptureError>
    }

    /// A UUID, version 7.
    let id: String
    let loop: StallReport.LoopDescription
    /// The threshold of the loop, in nanoseconds.
    let threshold: UInt64
    /// When the turn began.
    let startedAt: Timestamp
    /// How late the watchdog looked, in nanoseconds.
    let watchdogLate: UInt64
    var state: StallReport.State
    /// How long the stall took, or has taken until now, in nanoseconds.
    var duration: UInt64
    var samples: [Sample] = []
    /// The other threads of the process at the first sample, if they were asked for.
    var otherThreads: [OtherThread] = []
    /// Threads that were left out, because there are more than are captured.
    var omittedThreads = 0
    /// The images that `otherThreads` refers to.
    var otherImages = ImageList()
    /// How threads can be captured here.
    var captureMethods: [CapturedStack.Method] = []
}
