/// A reason why one capture method returned no stack.
package enum CaptureFailure: Error, Equatable {
    case noSuchThread
    /// The thread has to be stopped for a stack, and must not be.
    case notStopped
    /// The thread is running, so that its stack cannot be read.
    case notBlocked
    /// The thread ran during the read.
    case moved
    case refused(errno: Int32)
    case timedOut
    /// The thread waits, in a system call that is not known.
    case unknownSystemCall
    case signalBlocked
    /// The thread runs, but not in a system call.
    case notInCall
    /// The kernel took no sample of the thread in time: the thread was not on a CPU, or the event was not open yet.
    case notSampled
    /// The thread has been asked to stop, and has not left the kernel yet.
    case pending
    /// No stop of the thread is pending.
    case notPending
    case failed(errno: Int32)
}
