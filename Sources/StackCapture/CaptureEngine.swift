import Glibc
import LinuxSupport
package import StallReports

/// The mechanisms of a capture, as a protocol so that tests can replace CUnwind.
package protocol CaptureEngine: AnyObject {
    /// Returns whether the system permits ptrace, by trying it on a thread of the engine.
    func probeStop() -> Bool

    /// The error number with which the system refused ptrace to the last probe; `nil` if it did not.
    var stopRefusal: Int32? { get }

    var unwinder: Unwinder { get }

    /// Reads a thread; throws if it has ended.
    func read(_ probe: ThreadProbe) throws(CaptureFailure) -> ThreadReading

    func status(of probe: ThreadProbe, at reading: ThreadReading) -> ThreadStatus

    /// Captures a thread's stack; a read begins with the place in `reading`, the probe's last one.
    func capture(
        _ probe: ThreadProbe, at reading: ThreadReading, by method: StallReport.CaptureMethod
    ) throws(CaptureFailure) -> CapturedStack

    /// Captures a running thread's stack with ptrace; throws `.pending` if that waits for its system call to return.
    func stopOrWait(_ probe: ThreadProbe) throws(CaptureFailure) -> CapturedStack

    /// Returns the stack of a pending stop, once; throws `.pending` until there is one, and `.notPending` if none is due.
    func collectStop(of probe: ThreadProbe) throws(CaptureFailure) -> CapturedStack

    func cancelStop(of thread: Int32)

    func images() -> ImageList
}

/// Who steps from a frame to its caller, by the functions' call frame information.
package struct Unwinder: Sendable, Equatable {
    /// The name in reports: `libunwind 1.6.2`, or `built-in`.
    package var name: String
    /// Why it is not libunwind; `nil` if it is.
    package var reason: String?
}

/// Captures the stacks of threads of this process, for one thread: the watchdog.
package protocol StackCapturing: AnyObject {
    /// Captures a thread's stack, complete or not, in bounded time; throws if there is none. Without `mayStop`, it
    /// keeps no thread from running, and only a blocked thread has a stack.
    ///
    /// With `mayWait`, it throws an error whose ``CaptureFailure/isPending`` is set if the thread stays in the kernel, and
    /// the stack is captured when the thread's system call returns: see ``pendingCapture(of:)``.
    ///
    /// `reading` is the last one of `probe`. It is the stack's ``CapturedStack/reading`` if it still held.
    func capture(
        _ probe: ThreadProbe, at reading: ThreadReading, mayStop: Bool, mayWait: Bool
    ) throws(CaptureFailure) -> CapturedStack

    /// Captures the stack of a thread whose files are not open.
    func capture(thread: Int32, mayStop: Bool, mayWait: Bool) throws(CaptureFailure) -> CapturedStack

    /// Returns the result of a pending capture, once; `nil` if none is pending or the thread is still in the kernel.
    func pendingCapture(of thread: Int32) -> Result<CapturedStack, CaptureFailure>?

    func cancelPendingCapture(of thread: Int32)

    /// The time of all captures so far, in nanoseconds, in which the process was not stopped.
    var timeTaken: UInt64 { get }

    var methods: [StallReport.CaptureMethod] { get }

    var unwinder: Unwinder { get }

    func images() -> ImageList
}

extension StackCapturing {
    package func capture(thread: Int32, mayStop: Bool = true) throws(CaptureFailure) -> CapturedStack {
        try capture(thread: thread, mayStop: mayStop, mayWait: false)
    }
}

package enum CaptureFailure: Error, Equatable {
    case noSuchThread
    /// The thread has to be stopped for a stack, and must not be.
    case notStopped
    case notBlocked
    case moved
    case refused(errno: Int32)
    case timedOut
    /// The thread waits, in a system call that is not known.
    case unknownSystemCall
    case signalBlocked
    /// The thread has been asked to stop, and has not left the kernel yet.
    case pending
    case notPending
    case failed(errno: Int32)
    /// No thread is known to run the loop.
    case unknownThread
    /// The loop is a pool, whose threads are captured instead.
    case pool
    case notTried
    /// The watchdog has taken as much time for threads as it may.
    case outOfTime

    package var isThreadGone: Bool { self == .noSuchThread }

    /// Whether the stack is captured as soon as the thread leaves the kernel.
    package var isPending: Bool { self == .pending }
}

extension CaptureFailure: CustomStringConvertible {
    /// A sentence without its period, such as "the thread has ended".
    package var description: String {
        switch self {
        case .noSuchThread: StallReport.OtherThread.ended
        case .notBlocked, .moved: "the thread kept moving while it was read"
        case .refused(EBUSY): "another process traces the thread"
        case .refused(let error): "the system refused: \(String(cString: strerror(error)))"
        case .unknownSystemCall where FileStatus(path: "/proc/self/syscall").map { $0.owner != geteuid() } ?? false:
            "the process may not read which system call its threads wait in: "
                + "it is not dumpable (prctl(2)), as after a change of its user"
        case .unknownSystemCall: "the system call that the thread waits in is not known here"
        case .notStopped: "the thread would have to be stopped"
        case .timedOut: "the thread did not answer in time"
        case .pending: "the thread has been in the kernel since it was asked to stop"
        case .notPending: "no capture of the thread is pending"
        case .signalBlocked: "no stack: signal blocked"
        case .failed(EBUSY): "an earlier stop of the thread was still under way"
        case .failed(let error): "the capture failed: \(String(cString: strerror(error)))"
        case .unknownThread: "it is not known which thread runs the loop"
        case .pool: "a pool has no thread of its own: see its worker stacks"
        case .notTried: ""
        case .outOfTime: "the watchdog had no time for it: many threads were to be looked at"
        }
    }
}

/// A thread's status at one moment, as far as the choice of a capture method depends on it.
package struct ThreadStatus: Equatable, Sendable {
    var state: StallReport.ThreadState
    /// The number of the system call that blocks the thread; `nil` if it is running or waits for a page.
    var systemCall: Int?
    /// Whether a stop would end that call with EINTR (signal(7)), or a write with a part of its bytes.
    var isInterruptedByStop = false
    /// Whether the kernel shows no more of the thread than that it waits, so that it cannot be read.
    ///
    /// If its call may be one that a stop interrupts, `isInterruptedByStop` is true.
    var isOpaque = false
}
