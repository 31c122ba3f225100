/// The mechanisms of a capture, as a protocol so that tests can replace CUnwind.
package protocol CaptureEngine: AnyObject {
    /// Returns whether the system permits ptrace, by trying it on a thread of the engine.
    func probeStop() -> Bool

    /// Returns the current status of a thread.
    func status(of thread: Int32) throws(CaptureFailure) -> ThreadStatus

    /// Captures a thread's stack with one method.
    func capture(_ thread: Int32, by method: CapturedStack.Method) throws(CaptureFailure) -> CapturedStack

    /// Returns the images that are currently mapped.
    func images() -> ImageList

    /// Moves the calling thread to another CPU, if it is on `processor` and its affinity permits another one.
    func leave(processor: Int32)
}

/// A reason why one capture method returned no stack.
package enum CaptureFailure: Error, Equatable {
    case noSuchThread
    /// The thread is running, so that its stack cannot be read.
    case notBlocked
    /// The thread ran during the read.
    case moved
    case refused(errno: Int32)
    case timedOut
    /// The thread waits, in a system call that is not known.
    case unknownSystemCall
    case signalBlocked
    case failed(errno: Int32)
}
