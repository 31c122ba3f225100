import LinuxSupport

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
