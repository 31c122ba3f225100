import StackCapture
import StallReports
import LinuxSupport

/// A thread's wait for a lock, followed from owner to owner.
struct LockOwnership: Sendable {
    /// A thread that owns a lock for which another thread waits.
    struct Owner: Sendable {
        var thread: ThreadIdentity
        var stack: Result<CapturedStack, CaptureError>
        /// The system call in which it waits, if it waits.
        var systemCall: DescribedCall?
        /// The lock that it waits for, if it waits for one.
        var waitsFor: AwaitedLock?
        /// Whether it was on a CPU or ready to run.
        var isRunning: Bool
    }

    /// The lock that the stalled thread waits for.
    var site: AwaitedLock
    /// The owner of this lock, the owner of the lock that the first owner waits for, and so on.
    var owners: [Owner] = []
    /// Whether the last owner waits for a lock of an earlier owner or of the stalled thread: a deadlock.
    var isDeadlock = false
    /// Whether there are more owners than the limit.
    var isCutOff = false
    /// The images that the stacks refer to.
    var images = ImageList()
}
