/// The diagnosed cause of a stall, with the values behind it.
struct Cause: Sendable {
    /// The activity that took most of the time.
    enum Kind: String, Sendable {
        case cpu, lock, io, sleep, syscall, paging, cpuContention, throttled, deadlock, unknown
    }

    /// The certainty of the cause.
    enum Confidence: String, Sendable, Comparable {
        /// The largest part has less than half of the time.
        case possible
        /// The part has at least half of the time, but other parts may matter.
        case likely
        /// The part has nearly all of the time, and the observations agree.
        case certain

        static func < (left: Confidence, right: Confidence) -> Bool { left.rank < right.rank }

        private var rank: Int {
            switch self {
            case .possible: 0
            case .likely: 1
            case .certain: 2
            }
        }
    }

    var kind: Kind
    var confidence: Confidence
    var evidence: Evidence
    /// The observation that shows the cause best.
    var observation: Observation?
    var pressure: Pressure?
}

/// The state of a thread at one moment of a stall.
struct Observation: Sendable {
    /// The time of the observation, in monotonic nanoseconds.
    var time: UInt64
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

/// The input of ``CauseRules``.
struct Evidence: Sendable {
    var split: TimeSplit
    /// The observations within the turn, ascending by time.
    var observations: [Observation] = []
    /// The turn's start, in monotonic nanoseconds.
    var start: UInt64
    var minorFaults: UInt64 = 0
    var majorFaults: UInt64 = 0
    var voluntarySwitches: UInt64 = 0
    var involuntarySwitches: UInt64 = 0
    /// The kernel's share of the CPU time, 0 to 1; `nil` if there was too little CPU time to measure it.
    var kernelShare: Double?
    /// The time that CPU quotas throttled the thread's cgroups, in nanoseconds.
    var throttled: UInt64 = 0
    /// The file of the last page that the thread waited for, if known.
    var pagedFile: String?
}
