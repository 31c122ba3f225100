/// Which lock a thread waits for, and who holds it.
struct AwaitedLock: Equatable, Sendable {
    /// What can be waited for until somebody lets go.
    enum Kind: String, Sendable {
        /// A pthread mutex: also C++'s `std::mutex` and Foundation's `NSLock`, which are one.
        case pthreadMutex
        case pthreadReadWriteLock
        /// A futex with priority inheritance that is no pthread mutex: Swift's `Mutex`, and locks of the Swift runtime.
        case swiftMutex
        case dispatchUnfairLock
        /// `dispatch_sync` and its like, onto a queue that is busy.
        case dispatchQueue
        case dispatchOnce
        /// `pthread_join`: what is waited for is another thread's end.
        case threadJoin
        /// `pthread_once` and its like.
        case once
        case semaphore
        case dispatchSemaphore
        case dispatchGroup
        case condition
        case barrier
        /// `flock` and `fcntl` locks.
        case file
        /// A futex of which no more is known.
        case futex
        /// System V semaphores.
        case systemSemaphore
    }

    /// Who holds a lock.
    enum Ownership: Equatable, Sendable {
        /// A thread of this process, confirmed.
        case thread(Int32)
        /// This kind of lock has no owner: anybody may let go.
        case none
        /// It has one, but it could not be confirmed: why, in words that go on after "the owner is not known: ".
        case unknown(String)
    }

    var kind: Kind
    /// The address of the lock, or of the word that is waited on where the lock itself is not known; 0 for none.
    var address: UInt64
    /// The function that waits, such as `pthread_mutex_lock`.
    var function: String?
    /// The name that the app gave the lock, if it can have one: a queue's label.
    var label: String?
    /// Whether the wait ends by itself after a time.
    var hasTimeout = false
    var ownership: Ownership

    /// The thread that holds it, if that is known.
    var owner: Int32? {
        if case .thread(let thread) = ownership { return thread }
        return nil
    }
}
