/// Why a turn took so long: the values behind a report's cause.
struct Cause: Sendable {
    /// Where the time went to for the most part, and for what.
    enum Kind: String, Sendable {
        case cpu, lock, io, sleep, syscall, paging, cpuContention, throttled, deadlock, unknown
    }

    /// How sure the rules are.
    enum Confidence: String, Sendable, Comparable {
        /// One part has less than half of the time.
        case possible
        /// Most of the time went there, but not so that nothing else could matter.
        case likely
        /// Nearly all of it did, and what was seen agrees.
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
    /// The look at the thread that shows the cause best: what it waited in.
    var observation: Observation?
    var pressure: Pressure?
}

/// One look at a thread while its turn was too long.
struct Observation: Sendable {
    /// When it was, in monotonic nanoseconds.
    var time: UInt64
    /// What the thread was in.
    var activity: ThreadActivity
    /// The call, described, if it was in one.
    var call: DescribedCall?
    /// The function of libc that a thread that did not wait was in: the one that makes a system call, if it was in one.
    var function: String?
    /// The lock that it waited for, if it did.
    var lock: LockOwnership?
    /// The kernel's function that it waited in.
    var waitChannel: String?
    /// The kernel's functions, innermost first, where they may be read.
    var kernelStack: [String]?
}

/// All that the rules go by.
struct Evidence: Sendable {
    var split: TimeSplit
    /// Looks within the turn, ascending.
    var observations: [Observation] = []
    /// When the turn began, in monotonic nanoseconds.
    var start: UInt64
    var minorFaults: UInt64 = 0
    var majorFaults: UInt64 = 0
    var voluntarySwitches: UInt64 = 0
    var involuntarySwitches: UInt64 = 0
    /// Of the time on CPU, the part that was spent in the kernel, 0 to 1; `nil` if it was too short to tell.
    var kernelShare: Double?
    /// How long the thread's cgroup was kept from running by its CPU quota, in nanoseconds.
    var throttled: UInt64 = 0
    /// The file that the last page came from that the thread waited for, if that is known.
    var pagedFile: String?
}
