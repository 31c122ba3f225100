/// A function in which threads wait for locks, known by its name.
struct LockFunction: Equatable {
    /// What its futex belongs to.
    enum Kind: Equatable {
        case mutex, condition, readWriteLock, join, once, semaphore, barrier
        case dispatchOnce, dispatchSemaphore, dispatchGroup, dispatchUnfairLock
    }
    var kind: Kind
    /// The name as an app calls it.
    var name: String

    /// `nil` for a frame of any other function.
    init?(_ frame: NamedFrame) {
        guard let function = frame.function, let kind = Self.kinds[function] else { return nil }
        self.kind = kind
        name = function
    }

    /// Innermost first, a semaphore of libdispatch is seen as `sem_wait` before it is seen as its own.
    static func outermost(of frames: [NamedFrame]) -> LockFunction? {
        let found = frames.compactMap(LockFunction.init)
        guard let first = found.first else { return nil }
        guard first.kind == .semaphore else { return first }
        return found.first { $0.kind == .dispatchSemaphore } ?? first
    }

    /// The function through which others than libc call futex(2).
    static let anyCall = "syscall"

    /// Whether a function of that name in a stack says something of a lock.
    static func isKnown(_ function: String) -> Bool { function == anyCall || kinds[function] != nil }

    /// Exported functions of libc, and functions of libdispatch that its own symbol table names.
    private static let kinds: [String: Kind] = [
        "pthread_mutex_lock": .mutex,
        "pthread_mutex_timedlock": .mutex,
        "pthread_mutex_clocklock": .mutex,
        "pthread_cond_wait": .condition,
        "pthread_cond_timedwait": .condition,
        "pthread_cond_clockwait": .condition,
        "pthread_rwlock_rdlock": .readWriteLock,
        "pthread_rwlock_timedrdlock": .readWriteLock,
        "pthread_rwlock_clockrdlock": .readWriteLock,
        "pthread_rwlock_wrlock": .readWriteLock,
        "pthread_rwlock_timedwrlock": .readWriteLock,
        "pthread_rwlock_clockwrlock": .readWriteLock,
        "pthread_join": .join,
        "pthread_timedjoin_np": .join,
        "pthread_clockjoin_np": .join,
        "pthread_once": .once,
        "call_once": .once,
        "cxa_guard_acquire": .once,
        "sem_wait": .semaphore,
        "sem_timedwait": .semaphore,
        "sem_clockwait": .semaphore,
        "pthread_barrier_wait": .barrier,
        "dispatch_once": .dispatchOnce,
        "dispatch_once_f": .dispatchOnce,
        "dispatch_once_wait": .dispatchOnce,
        "dispatch_semaphore_wait": .dispatchSemaphore,
        "dispatch_semaphore_wait_slow": .dispatchSemaphore,
        "dispatch_sema4_wait": .dispatchSemaphore,
        "dispatch_sema4_timedwait": .dispatchSemaphore,
        "dispatch_group_wait": .dispatchGroup,
        "dispatch_group_wait_slow": .dispatchGroup,
        "dispatch_unfair_lock_lock_slow": .dispatchUnfairLock,
    ]
}
