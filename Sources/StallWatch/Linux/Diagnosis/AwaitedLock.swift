import LinuxSupport
import StackCapture
import StallReports

struct AwaitedLock: Equatable, Sendable {
    typealias Kind = StallReport.LockKind

    enum Ownership: Equatable, Sendable {
        /// A thread of this process, confirmed by the lock's memory.
        case thread(Int32)
        case process
        /// None: any thread may release a lock of this kind.
        case none
        /// Not confirmed, with the reason; it follows "the owner is not known: " in sentences.
        case unknown(String)
    }

    var kind: Kind
    /// The address of the lock, or of the futex word if the lock itself is not known; 0 for none.
    var address: UInt64 = 0
    /// The waiting function, such as `pthread_mutex_lock`.
    var function: String?
    /// The label of a dispatch queue, the name of a stdio stream, or a task's id and name; `nil` for other kinds.
    var label: String?
    /// How often a dispatch group was entered and not left; `nil` for other kinds, and if that is not known.
    var entries: Int?
    var hasTimeout = false
    var ownership: Ownership

    var owner: Int32? {
        if case .thread(let thread) = ownership { return thread }
        return nil
    }
}

struct LockChain: Sendable {
    struct Owner: Sendable {
        var thread: ThreadIdentity
        /// The stack; `nil` if it was not captured.
        var stack: CapturedStack?
        var systemCall: DescribedCall?
        /// For whom the call waits.
        var question: PeerQuestion?
        var waitsFor: AwaitedLock?
        var isRunning: Bool
    }

    var lock: AwaitedLock
    /// The owner of this lock, the owner of the lock that the first owner waits for, and so on.
    var owners: [Owner] = []
    /// How the last owner spent the time for which it was observed; `nil` if that is not known.
    var lastOwnerTime: OwnerTime?
    /// Whether the last owner waits for a lock of an earlier owner or of the stalled thread: a deadlock.
    var isDeadlock = false
    var images = ImageList()
}

struct ThreadWait: Equatable, Sendable {
    var call: DescribedCall
    var lock: AwaitedLock?
    /// Whether the thread can never go on, because it waits, directly or not, for threads that wait for each other.
    var isDeadlock = false
    /// The wait for the lock as it was read; `nil` without a lock.
    var link: LockOwnerResolver.Link?
}
