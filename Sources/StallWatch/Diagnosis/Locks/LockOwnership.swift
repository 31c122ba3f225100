import StackCapture
import StallReports
import LinuxSupport

/// A thread's wait for a lock, followed from owner to owner.
struct LockOwnership: Sendable {
    /// A thread that holds a lock that another one waits for.
    struct Owner: Sendable {
        var thread: ThreadIdentity
        var stack: Result<CapturedStack, CaptureError>
        /// The call that it waits in, if it waits in one.
        var systemCall: DescribedCall?
        /// The lock that it waits for itself, if it does.
        var waitsFor: AwaitedLock?
        /// Whether it was on a CPU, or ready for one.
        var isRunning: Bool
    }

    /// The lock that the stalled thread waits for.
    var site: AwaitedLock
    /// Who holds it, who holds the lock that the first one waits for, and so on.
    var owners: [Owner] = []
    /// Whether the last owner waits for a lock of one that comes before it, or of the stalled thread: nobody in the circle
    /// can ever go on.
    var isDeadlock = false
    /// Whether there are more owners than are followed.
    var isCutOff = false
    /// The images that the stacks refer to.
    var images = ImageList()
}
