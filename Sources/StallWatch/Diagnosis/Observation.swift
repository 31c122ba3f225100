/// The state of a thread at one moment of a stall.
struct Observation: Sendable {
    /// The time of the observation, in monotonic nanoseconds.
    var time: UInt64
    /// When the thread was last seen in the same place; `nil` if it was seen there once.
    var until: UInt64?
    /// The thread's CPU and run-queue time at ``time`` and at ``until``; `nil` if it is not known.
    var used: (from: UInt64, to: UInt64)?
    /// The stack, as a number: equal for observations of the same place.
    var place: Int?
    /// The thread's activity.
    var activity: ThreadActivity
    /// The system call that the thread waited in, if any.
    var call: DescribedCall?
    /// The innermost libc function of a running thread, if its innermost frame was in libc.
    var function: String?
    /// The lock that the thread waited for, if any.
    var lock: LockOwnership?
    /// The kernel function that the thread waited in.
    var waitChannel: String?
    /// The waiting thread's kernel functions, innermost first; `nil` without permission to read them.
    var kernelStack: [String]?
}
