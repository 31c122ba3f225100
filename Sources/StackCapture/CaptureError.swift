/// The reason why a thread's stack could not be captured.
package struct CaptureError: Error, Equatable, CustomStringConvertible {
    /// A sentence without its period, such as "the thread has ended".
    package var description: String
    /// Whether the thread has ended.
    package var isThreadGone = false
    /// Whether the stack is captured as soon as the thread leaves the kernel.
    package var isPending = false

    package init(
        description: String,
        isThreadGone: Bool = false,
        isPending: Bool = false
    ) {
        self.description = description
        self.isThreadGone = isThreadGone
        self.isPending = isPending
    }
}
