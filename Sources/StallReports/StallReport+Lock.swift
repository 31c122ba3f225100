extension StallReport {
    /// A lock that was waited for.
    public struct Lock: Codable, Sendable, Equatable {
        /// What kind of lock it is.
        public var kind: LockKind
        /// Its address, in hexadecimal; `nil` if it has none.
        public var address: String?
        /// The function that waited.
        public var function: String?
        /// The name that the app gave it: a dispatch queue's label.
        public var label: String?
        /// Whether the owners wait in a circle.
        public var isDeadlock: Bool
        /// Who holds it, who holds the lock that the first one waits for, and so on.
        ///
        /// Only threads that were confirmed to.
        public var owners: [LockOwner]
        /// Why there is no owner; `nil` when there is one.
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

    /// What kind of lock it is.
    ///
    /// More may come.
    public struct LockKind: RawRepresentable, Codable, Sendable, Hashable {
        /// The word in the JSON.
        public let rawValue: String
        /// Takes any word, known or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// pthread_mutex_t; also NSLock, NSRecursiveLock and std::mutex.
        public static let pthreadMutex = LockKind(rawValue: "pthreadMutex")
        /// pthread_rwlock_t.
        public static let pthreadReadWriteLock = LockKind(rawValue: "pthreadReadWriteLock")
        /// Mutex of Swift's Synchronization module.
        public static let swiftMutex = LockKind(rawValue: "swiftMutex")
        /// A lock inside libdispatch.
        public static let dispatchUnfairLock = LockKind(rawValue: "dispatchUnfairLock")
        /// A serial dispatch queue.
        public static let dispatchQueue = LockKind(rawValue: "dispatchQueue")
        /// dispatch_once.
        public static let dispatchOnce = LockKind(rawValue: "dispatchOnce")
        /// The end of a thread.
        public static let threadJoin = LockKind(rawValue: "threadJoin")
        /// pthread_once.
        public static let once = LockKind(rawValue: "once")
        /// sem_t.
        public static let semaphore = LockKind(rawValue: "semaphore")
        /// DispatchSemaphore.
        public static let dispatchSemaphore = LockKind(rawValue: "dispatchSemaphore")
        /// DispatchGroup.
        public static let dispatchGroup = LockKind(rawValue: "dispatchGroup")
        /// pthread_cond_t; also NSCondition.
        public static let condition = LockKind(rawValue: "condition")
        /// pthread_barrier_t.
        public static let barrier = LockKind(rawValue: "barrier")
        /// A lock on a file.
        public static let file = LockKind(rawValue: "file")
        /// A futex of a kind that is not known.
        public static let futex = LockKind(rawValue: "futex")
        /// A System V semaphore.
        public static let systemSemaphore = LockKind(rawValue: "systemSemaphore")
    }

    /// A thread that holds a lock.
    public struct LockOwner: Codable, Sendable, Equatable {
        /// The thread.
        public var thread: ThreadDescription
        /// Index into ``StallReport/stacks``; `nil` when no stack could be taken.
        public var stack: Int?
        /// Whether it was on a CPU, or ready for one.
        public var isRunning: Bool
        /// The system call that it waited in.
        public var systemCall: SystemCall?
        /// The kind of the lock that it waited for itself.
        public var waitsFor: LockKind?
        /// That lock's address, in hexadecimal.
        public var waitsForAddress: String?
        /// That lock's name, if the app gave it one.
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
