/// The lock that a thread waits for, and its owner.
struct AwaitedLock: Equatable, Sendable {
    /// The kind of lock.
    enum Kind: String, Sendable {
        /// A pthread mutex, also in C++'s `std::mutex` and Foundation's `NSLock`.
        case pthreadMutex
        case pthreadReadWriteLock
        /// A futex with priority inheritance that is not a pthread mutex: Swift's `Mutex` and the Swift runtime's locks.
        case swiftMutex
        case dispatchUnfairLock
        /// A busy queue, in `dispatch_sync` and similar functions.
        case dispatchQueue
        case dispatchOnce
        /// The end of another thread, in `pthread_join`.
        case threadJoin
        /// An initializer that another thread runs, in `pthread_once` and similar functions.
        case once
        case semaphore
        case dispatchSemaphore
        case dispatchGroup
        case condition
        case barrier
        /// `flock` and `fcntl` locks.
        case file
        /// A futex of unknown use.
        case futex
        /// System V semaphores.
        case systemSemaphore
    }

    /// The owner of a lock.
    enum Ownership: Equatable, Sendable {
        /// A thread of this process, confirmed by the lock's memory.
        case thread(Int32)
        /// None: any thread may release a lock of this kind.
        case none
        /// Not confirmed, with the reason; it follows "the owner is not known: " in sentences.
        case unknown(String)
    }

    var kind: Kind
    /// The address of the lock, or of the futex word if the lock itself is not known; 0 for none.
    var address: UInt64
    /// The waiting function, such as `pthread_mutex_lock`.
    var function: String?
    /// The label of a dispatch queue; `nil` for other kinds.
    var label: String?
    /// Whether the wait has a time limit.
    var hasTimeout = false
    var ownership: Ownership

    /// The owning thread, if it is known.
    var owner: Int32? {
        if case .thread(let thread) = ownership { return thread }
        return nil
    }
}
