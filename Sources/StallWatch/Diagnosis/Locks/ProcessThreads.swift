import StackCapture
import StallReports
import LinuxSupport
import Glibc

/// The threads of this process, for real.
final class ProcessThreads: LockOwnerResolver.Threads {
    private let capturer: any StackCapturing
    private let functionNames = WaitFunctionNames()

    /// Reads the names of the functions that wait: some milliseconds.
    init(capturer: any StackCapturing) {
        self.capturer = capturer
        functionNames.prepare(for: capturer.images())
    }

    func state(of thread: Int32) -> LockOwnerResolver.ThreadState? {
        guard let reading = ThreadFiles(thread: thread)?.read(), reading.isAlive else { return nil }
        return LockOwnerResolver.ThreadState(activity: reading.activity, voluntarySwitches: reading.voluntarySwitches)
    }

    /// The kind of stall that the thread's activity would be the cause of; `nil` when the thread has ended.
    func activity(of thread: Int32) -> Cause.Kind? { state(of: thread).flatMap { Cause.Kind(of: $0.activity) } }

    func capture(_ thread: Int32) -> Result<CapturedStack, CaptureError> {
        do throws(CaptureError) {
            return .success(try capturer.capture(thread: thread))
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
