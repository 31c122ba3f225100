/// The mechanisms of a capture, as a protocol so that tests can replace CUnwind.
package protocol CaptureEngine: AnyObject {
    /// Returns whether the system permits ptrace, by trying it on a thread of the engine.
    func probeStop() -> Bool

    /// Returns the current status of a thread.
    func status(of thread: Int32) throws(CaptureFailure) -> ThreadStatus

    /// Captures a thread's stack with one method.
    func capture(_ thread: Int32, by method: CapturedStack.Method) throws(CaptureFailure) -> CapturedStack

    /// Captures a running thread's stack with ptrace; throws `.pending` if the thread stays in the kernel.
    ///
    /// Then the stack is captured when its system call returns.
    func stopOrWait(_ thread: Int32) throws(CaptureFailure) -> CapturedStack

    /// Returns the stack of a pending stop, once; throws `.pending` until there is one, and `.notPending` if none is due.
    func collectStop(of thread: Int32) throws(CaptureFailure) -> CapturedStack

    /// Drops the pending stop of a thread, if there is one.
    func cancelStop(of thread: Int32)

    /// Returns a thread's CPU time; `nil` if the thread has ended or the system does not show it.
    func cpuTime(of thread: Int32) -> TickedCPUTime?

    /// Returns the images that are currently mapped.
    func images() -> ImageList

    /// Moves the calling thread to another CPU, if it is on `processor` and its affinity permits another one.
    func leave(processor: Int32)
}
