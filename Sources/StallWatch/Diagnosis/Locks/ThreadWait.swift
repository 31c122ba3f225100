/// The system call that a thread waits in, and the lock that it waits for.
struct ThreadWait: Equatable, Sendable {
    var call: DescribedCall
    /// The lock; `nil` if the call does not wait for one.
    var lock: AwaitedLock?
    /// Whether the thread can never go on, because it waits, directly or not, for threads that wait for each other.
    var isDeadlock = false
    /// How often the thread has run so far.
    var runs: UInt64
}
