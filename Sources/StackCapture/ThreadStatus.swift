/// A thread's status at one moment, as far as the choice of a capture method depends on it.
package struct ThreadStatus: Equatable {
    var state: CapturedStack.ThreadState
    /// The number of the system call that blocks the thread; `nil` if it is running or waits for a page.
    var systemCall: Int?
    /// Whether a stop would end that call with EINTR (signal(7)).
    var isInterruptedByStop = false
    /// Whether the kernel shows no more of the thread than that it waits, so that it cannot be read.
    ///
    /// If its call may be one that a stop interrupts, `isInterruptedByStop` is true.
    var isOpaque = false
}
