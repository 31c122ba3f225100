/// Takes the stacks of threads of this process.
///
/// Used by one thread, the watchdog.
package protocol StackCapturing: AnyObject {
    /// Captures the stack of the thread with the kernel id `thread`, in bounded time.
    ///
    /// - Throws: ``CaptureError``, which says why there is no stack.
    func capture(thread: Int32) throws(CaptureError) -> CapturedStack

    /// The methods that the system permits here.
    var methods: [CapturedStack.Method] { get }

    /// The images that are mapped now.
    func images() -> ImageList

    /// Moves the calling thread to another processor, if it is on that one and may be on another.
    func leave(processor: Int32)
}

/// Why a thread's stack could not be captured.
package struct CaptureError: Error, Equatable, CustomStringConvertible {
    /// A sentence without its full stop, such as "the thread has ended".
    package var description: String
    /// Whether the thread that was to be captured is gone.
    package var isThreadGone = false

    package init(
        description: String,
        isThreadGone: Bool = false
    ) {
        self.description = description
        self.isThreadGone = isThreadGone
    }
}
