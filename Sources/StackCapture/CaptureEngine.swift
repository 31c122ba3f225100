/// The mechanisms behind a capture: what CUnwind does, as a protocol, so that the policy's use of them can be tested.
package protocol CaptureEngine: AnyObject {
    /// Whether ptrace is permitted here, tried on a thread of the engine's own.
    func probeStop() -> Bool

    /// What the thread is doing now.
    func status(of thread: Int32) throws(CaptureFailure) -> ThreadStatus

    /// Captures the thread with one method.
    func capture(_ thread: Int32, by method: CapturedStack.Method) throws(CaptureFailure) -> CapturedStack

    /// The images that are mapped now.
    func images() -> ImageList

    /// Moves the calling thread to another processor, if it is on that one and may be on another.
    func leave(processor: Int32)
}

/// Why one method gave no stack.
package enum CaptureFailure: Error, Equatable {
    case noSuchThread
    /// The thread runs: there is nothing to read.
    case notBlocked
    /// The thread ran while it was read.
    case moved
    case refused(errno: Int32)
    case timedOut
    /// The thread waits, in a system call that is not known.
    case unknownSystemCall
    case signalBlocked
    case failed(errno: Int32)
}
