import StackCapture
import StallReports
import LinuxSupport
import Glibc

/// The threads of this process.
final class ProcessThreads: LockOwnerResolver.Threads {
    private let capturer: any StackCapturing
    private let functionNames: WaitFunctionNames
    /// Whether owners of locks may be stopped for their stacks.
    private let mayStop: Bool

    /// Reads the names of functions that wait, which takes some milliseconds.
    init(capturer: any StackCapturing) {
        self.capturer = capturer
        functionNames = WaitFunctionNames()
        mayStop = true
        functionNames.prepare(for: capturer.images())
    }

    /// Creates the same threads, of which none is stopped.
    init(unstopped threads: ProcessThreads) {
        capturer = threads.capturer
        functionNames = threads.functionNames
        mayStop = false
    }

    func state(of thread: Int32) -> LockOwnerResolver.ThreadState? {
        guard let reading = ThreadFiles(thread: thread)?.read(), reading.isAlive else { return nil }
        return LockOwnerResolver.ThreadState(activity: reading.activity, runs: reading.runs)
    }

    /// Returns the kind of cause that the thread's activity stands for; `nil` if the thread has ended or the system does not
    /// show what it waits for.
    func activity(of thread: Int32) -> Cause.Kind? {
        guard let reading = ThreadFiles(thread: thread)?.read(), reading.isAlive else { return nil }
        return Cause.Kind(of: reading.activity) ?? Cause.Kind(waitChannel: reading.waitChannel)
    }

    func capture(_ thread: Int32) -> Result<CapturedStack, CaptureError> {
        do throws(CaptureError) {
            return .success(try capturer.capture(thread: thread, mayStop: mayStop))
        } catch {
            return .failure(error)
        }
    }

    func names(of stack: CapturedStack) -> [NamedFrame] {
        functionNames.names(of: stack.frames, in: capturer.images())
    }

    func describe(_ thread: Int32) -> ThreadIdentity { .init(thread) }

    func images() -> ImageList { capturer.images() }
}
