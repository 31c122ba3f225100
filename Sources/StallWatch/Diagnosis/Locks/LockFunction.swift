/// A function in which threads wait for locks, recognized by its name.
struct LockFunction: Equatable {
    /// The kind of lock that its futex belongs to.
    enum Kind: Equatable {
        case mutex, condition, readWriteLock, join, once, semaphore, barrier
        case dispatchOnce, dispatchSemaphore, dispatchGroup, dispatchUnfairLock
    }
    var kind: Kind
    /// The name that an app calls.
    var name: String

    /// Creates the lock function of a frame; `nil` for any other function.
    init?(_ frame: NamedFrame) {
        guard let function = frame.function, let kind = Self.kinds[function] else { return nil }
        self.kind = kind
        name = function
    }

    /// Returns the function that the app called, for frames from the innermost outward.
    ///
    /// A libdispatch semaphore waits in `sem_wait`, which is further in.
    static func outermost(of frames: [NamedFrame]) -> LockFunction? {
        let found = frames.compactMap(LockFunction.init)
        guard let first = found.first else { return nil }
        guard first.kind == .semaphore else { return first }
        return found.first { $0.kind == .dispatchSemaphore } ?? first
    }

    /// The function that other libraries than libc call futex(2) with.
    static let anyCall = "syscall"

    /// Returns whether the function name helps to recognize a lock.
    static func isKnown(_ function: String) -> Bool { function == anyCall || kinds[function] != nil }

    /// Exported functions of libc, and functions in the symbol table of libdispatch.
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
