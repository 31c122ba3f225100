/// Captures the stacks of threads of this process.
///
/// Only one thread, the watchdog, uses it.
package protocol StackCapturing: AnyObject {
    /// Captures a thread's stack in bounded time.
    ///
    /// - Parameter thread: The thread's kernel id.
    /// - Returns: The stack, complete or not.
    /// - Throws: ``CaptureError`` if there is no stack.
    func capture(thread: Int32) throws(CaptureError) -> CapturedStack

    /// The capture methods that the system permits.
    var methods: [CapturedStack.Method] { get }

    /// Returns the images that are currently mapped.
    func images() -> ImageList

    /// Moves the calling thread to another CPU, if it is on `processor` and its affinity permits another one.
    func leave(processor: Int32)
}

/// The reason why a thread's stack could not be captured.
package struct CaptureError: Error, Equatable, CustomStringConvertible {
    /// A sentence without its period, such as "the thread has ended".
    package var description: String
    /// Whether the thread has ended.
    package var isThreadGone = false

    package init(
        description: String,
        isThreadGone: Bool = false
    ) {
        self.description = description
        self.isThreadGone = isThreadGone
    }
}
