/// Captures as another does, and sums up the time that takes.
///
/// Used on the watchdog's thread: what it spends on captures is no time in which the process stood still.
package final class TimedCapturer: StackCapturing {
    /// What one capture counts for at most, in nanoseconds: two waits for the thread to stop, each of which may take
    /// `CUNWIND_STOP_TIMEOUT_NANOSECONDS` and its helper's 100 ms of grace.
    ///
    /// One that takes longer was stopped together with the process.
    static let longestCapture: UInt64 = 500_000_000

    /// How long all captures so far took, in nanoseconds.
    package private(set) var timeTaken: UInt64 = 0
    private let capturer: any StackCapturing
    private let now: @Sendable () -> UInt64

    package init(_ capturer: any StackCapturing, now: @escaping @Sendable () -> UInt64) {
        self.capturer = capturer
        self.now = now
    }

    package func capture(thread: Int32) throws(CaptureError) -> CapturedStack {
        let begun = now()
        defer { timeTaken += min(now() &- begun, Self.longestCapture) }
        return try capturer.capture(thread: thread)
    }

    package var methods: [CapturedStack.Method] { capturer.methods }

    package func images() -> ImageList { capturer.images() }

    package func leave(processor: Int32) { capturer.leave(processor: processor) }
}
