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
    /// When a wait without an owner ends by itself; `nil` if it does not, or if that is not known.
    var limit: TimeLimit?
    var ownership: Ownership

    var owner: Int32? {
        if case .thread(let thread) = ownership { return thread }
        return nil
    }
}

/// When a wait ends by itself, on the clock that its call names.
struct TimeLimit: Equatable, Sendable {
    /// Whether it is a time of CLOCK_REALTIME, not of CLOCK_MONOTONIC.
    var isRealtime: Bool
    var nanoseconds: UInt64

    /// The longest time, in nanoseconds, after which a thread whose wait has ended is expected to have ended its turn.
    static let longestReturn: UInt64 = 20_000_000
    /// The inexactness of a comparison of two clocks, in nanoseconds.
    static let uncertainty: UInt64 = 1_000_000

    /// Whether the limit ended a wait, at the `end` of the turn that it took: both by CLOCK_MONOTONIC.
    ///
    /// `nil` if the limit was long over: the thread has gone on to another wait.
    static func hasEnded(_ limit: UInt64, wait end: UInt64) -> Bool? {
        if end &+ uncertainty < limit { return false }
        return end <= limit &+ longestReturn ? true : nil
    }

    /// The same moment by CLOCK_MONOTONIC, as the clocks stand now; `nil` if it is longer ago than that clock counts.
    var monotonic: UInt64? {
        guard isRealtime else { return nanoseconds }
        // The second clock of the pair is read between two readings of the first.
        let now = ClockPair(boot: wallClockNow)
        return UInt64(exactly: Int64(clamping: nanoseconds) - Int64(clamping: now.boot &- now.monotonic))
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
    /// The time limit of the wait as the clocks stood at the look, in monotonic nanoseconds.
    var limit: UInt64?
    /// Whether that ended the wait; `nil` without one, before the end, and if it is not known.
    var endedByLimit: Bool?
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
