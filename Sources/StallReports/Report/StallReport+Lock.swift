extension StallReport {
    /// A lock for which a thread waited.
    public struct Lock: Codable, Sendable, Equatable {
        /// The kind of lock.
        public var kind: LockKind
        /// The lock's address, in hexadecimal; `nil` if it has none.
        public var address: String?
        /// The function in which the thread waited.
        public var function: String?
        /// The label that the app gave the lock: a dispatch queue's label.
        public var label: String?
        /// Whether the owners wait for each other in a cycle.
        public var isDeadlock: Bool
        /// The chain of owners.
        ///
        /// The first one owns this lock, the second one owns the lock for which the first one waits, and so on. The
        /// monitor has confirmed each owner.
        public var owners: [LockOwner]
        /// The reason why ``owners`` is empty; `nil` if it is not.
        public var reason: String?

        package init(
            kind: LockKind,
            address: String? = nil,
            function: String? = nil,
            label: String? = nil,
            isDeadlock: Bool,
            owners: [LockOwner],
            reason: String? = nil
        ) {
            self.kind = kind
            self.address = address
            self.function = function
            self.label = label
            self.isDeadlock = isDeadlock
            self.owners = owners
            self.reason = reason
        }
    }

    /// A kind of lock, or of another object that threads wait for.
    ///
    /// Later versions may add kinds.
    public struct LockKind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Accepts any word, known or unknown.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A `pthread_mutex_t`; also `NSLock`, `NSRecursiveLock` and `std::mutex`.
        public static let pthreadMutex = LockKind(rawValue: "pthreadMutex")
        /// A `pthread_rwlock_t`.
        public static let pthreadReadWriteLock = LockKind(rawValue: "pthreadReadWriteLock")
        /// A `Mutex` of Swift's Synchronization module.
        public static let swiftMutex = LockKind(rawValue: "swiftMutex")
        /// A lock inside libdispatch.
        public static let dispatchUnfairLock = LockKind(rawValue: "dispatchUnfairLock")
        /// A serial dispatch queue.
        public static let dispatchQueue = LockKind(rawValue: "dispatchQueue")
        /// An initialization by `dispatch_once`.
        public static let dispatchOnce = LockKind(rawValue: "dispatchOnce")
        /// The end of a thread.
        public static let threadJoin = LockKind(rawValue: "threadJoin")
        /// An initialization by `pthread_once`, `call_once` or `swift_once`.
        public static let once = LockKind(rawValue: "once")
        /// A `sem_t`.
        public static let semaphore = LockKind(rawValue: "semaphore")
        /// A `DispatchSemaphore`.
        public static let dispatchSemaphore = LockKind(rawValue: "dispatchSemaphore")
        /// A `DispatchGroup`.
        public static let dispatchGroup = LockKind(rawValue: "dispatchGroup")
        /// A `pthread_cond_t`; also `NSCondition`.
        public static let condition = LockKind(rawValue: "condition")
        /// A `pthread_barrier_t`.
        public static let barrier = LockKind(rawValue: "barrier")
        /// A lock on a file.
        public static let file = LockKind(rawValue: "file")
        /// A futex of an unknown kind.
        public static let futex = LockKind(rawValue: "futex")
        /// A System V semaphore.
        public static let systemSemaphore = LockKind(rawValue: "systemSemaphore")
    }

    /// A thread that holds a lock.
    public struct LockOwner: Codable, Sendable, Equatable {
        /// The thread that holds the lock.
        public var thread: ThreadDescription
        /// The index of the thread's stack in ``StallReport/stacks``; `nil` if it could not be captured.
        public var stack: Int?
        /// Whether the thread was on a CPU or ready to run.
        public var isRunning: Bool
        /// The system call in which the thread was blocked.
        public var systemCall: SystemCall?
        /// The kind of lock for which the thread waited itself; `nil` if none.
        public var waitsFor: LockKind?
        /// The address of the lock for which the thread waited, in hexadecimal.
        public var waitsForAddress: String?
        /// The app's label of the lock for which the thread waited.
        public var waitsForLabel: String?

        package init(
            thread: ThreadDescription,
            stack: Int? = nil,
            isRunning: Bool,
            systemCall: SystemCall? = nil,
            waitsFor: LockKind? = nil,
            waitsForAddress: String? = nil,
            waitsForLabel: String? = nil
        ) {
            self.thread = thread
            self.stack = stack
            self.isRunning = isRunning
            self.systemCall = systemCall
            self.waitsFor = waitsFor
            self.waitsForAddress = waitsForAddress
            self.waitsForLabel = waitsForLabel
        }
    }
}
