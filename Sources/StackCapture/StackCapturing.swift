/// Captures the stacks of threads of this process.
///
/// Only one thread, the watchdog, uses it.
package protocol StackCapturing: AnyObject {
    /// Captures a thread's stack in bounded time.
    ///
    /// - Parameters:
    ///   - thread: The thread's kernel id.
    ///   - mayStop: Whether the capture may keep the thread from running. If not, only a blocked thread has a stack.
    /// - Returns: The stack, complete or not.
    /// - Throws: ``CaptureError`` if there is no stack.
    func capture(thread: Int32, mayStop: Bool) throws(CaptureError) -> CapturedStack

    /// Captures a thread's stack in bounded time, or later if the thread stays in the kernel.
    ///
    /// - Parameter thread: The thread's kernel id.
    /// - Returns: The stack, complete or not.
    /// - Throws: ``CaptureError`` if there is no stack. If its ``CaptureError/isPending`` is set, the thread's stack is
    ///   captured when its system call returns: see ``pendingCapture(of:)``.
    func captureOrWait(thread: Int32) throws(CaptureError) -> CapturedStack

    /// Returns the result of a pending capture, once; `nil` if none is pending or the thread is still in the kernel.
    func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureError>?

    /// Drops a pending capture, if there is one.
    func cancelPendingCapture(of thread: Int32)

    /// Notes a thread's CPU time so far, before a capture may be needed.
    ///
    /// A capture of a thread that may be in a system call tries not to disturb the call.
    ///
    /// - Parameters:
    ///   - thread: The thread's kernel id.
    ///   - turn: The beginning of its turn, in monotonic nanoseconds.
    func note(thread: Int32, turn: UInt64)

    /// The capture methods that the system permits.
    var methods: [CapturedStack.Method] { get }

    /// Returns the images that are currently mapped.
    func images() -> ImageList

    /// Moves the calling thread to another CPU, if it is on `processor` and its affinity permits another one.
    func leave(processor: Int32)
}

extension StackCapturing {
    /// Captures a thread's stack in bounded time, by a method that may keep the thread from running.
    package func capture(thread: Int32) throws(CaptureError) -> CapturedStack {
        try capture(thread: thread, mayStop: true)
    }
}

/// A capturer without pending captures.
extension StackCapturing {
    package func captureOrWait(thread: Int32) throws(CaptureError) -> CapturedStack { try capture(thread: thread) }
    package func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureError>? { nil }
    package func cancelPendingCapture(of thread: Int32) {}
    package func note(thread: Int32, turn: UInt64) {}
}
