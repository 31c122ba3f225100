/// What the kernel says of a thread at one moment, as far as the choice of a capture method needs it.
package struct ThreadStatus: Equatable {
    var state: CapturedStack.ThreadState
    /// The number of the system call that it is blocked in; `nil` when it runs, or waits for a page.
    var systemCall: Int?
    /// Whether a stop would make that call end with EINTR (signal(7)).
    var isInterruptedByStop = false
    /// Whether the kernel shows no more of the thread than that it waits, so that it cannot be read.
    ///
    /// If its call may be one that a stop interrupts, `isInterruptedByStop` is true.
    var isOpaque = false
}
