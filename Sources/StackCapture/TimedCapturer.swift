/// Forwards to another capturer, and adds up the time of its captures.
///
/// The watchdog uses it to tell the time that it spends on captures from a time in which the process was stopped.
package final class TimedCapturer: StackCapturing {
    /// The longest time that counts for one capture, in nanoseconds.
    ///
    /// A capture waits at most twice for the thread to stop. Each wait takes at most `CUNWIND_STOP_TIMEOUT_NANOSECONDS`
    /// and the helper's grace period of 100 ms. If a capture takes longer, the whole process was stopped meanwhile.
    static let longestCapture: UInt64 = 500_000_000

    /// The time of all captures so far, in nanoseconds.
    package private(set) var timeTaken: UInt64 = 0
    private let capturer: any StackCapturing
    private let now: @Sendable () -> UInt64

    package init(_ capturer: any StackCapturing, now: @escaping @Sendable () -> UInt64) {
        self.capturer = capturer
        self.now = now
    }

    package func capture(thread: Int32, mayStop: Bool) throws(CaptureError) -> CapturedStack {
        let begun = now()
        defer { timeTaken += min(now() &- begun, Self.longestCapture) }
        return try capturer.capture(thread: thread, mayStop: mayStop)
    }

    package func captureOrWait(thread: Int32) throws(CaptureError) -> CapturedStack {
        let begun = now()
        defer { timeTaken += min(now() &- begun, Self.longestCapture) }
        return try capturer.captureOrWait(thread: thread)
    }

    package func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureError>? {
        let begun = now()
        defer { timeTaken += min(now() &- begun, Self.longestCapture) }
        return capturer.pendingCapture(of: thread)
    }

    package func cancelPendingCapture(of thread: Int32) { capturer.cancelPendingCapture(of: thread) }

    package func note(thread: Int32, turn: UInt64) { capturer.note(thread: thread, turn: turn) }

    package var methods: [CapturedStack.Method] { capturer.methods }

    package func images() -> ImageList { capturer.images() }

    package func leave(processor: Int32) { capturer.leave(processor: processor) }
}
