/// Why something that was over the threshold was not reported.
public enum SuppressionReason: String, Codable, Sendable, CaseIterable {
    /// The whole process had been stopped: SIGSTOP, the cgroup freezer, a paused virtual machine. The watchdog was late
    /// itself, and had not been waiting for a CPU.
    case processStopped
    /// The host of this virtual machine had given its CPUs to others (steal, proc_stat(5)), so the watchdog was late: turns
    /// got a fifth of the threshold more to end, 50 ms at most.
    case cpuStolen
    /// The machine had been suspended.
    case suspended
    /// A debugger was attached to the loop's thread.
    case debugger
    /// The app had paused the monitor, or was in an ignored scope.
    case paused
    /// The thread that ran the loop had ended.
    case threadEnded
    /// It was the same as one that was reported, and not the 1st, 2nd, 4th, 8th … of its kind.
    case repeated
    /// Too many reports had been made within a minute.
    case rateLimit
}

/// How often each reason held something back.
public struct SuppressionCounts: Codable, Sendable, Equatable {
    /// Only counts that are not 0, so that equal counts are equal values.
    private var counts: [String: Int] = [:]

    package init() {}

    package mutating func add(_ other: SuppressionCounts) {
        counts.merge(other.counts) { $0 + $1 }
    }

    /// The alphabetically first reason with a negative count, and that count; `nil` if there is none.
    package var firstNegative: (reason: String, count: Int)? {
        counts.filter { $0.value < 0 }.min { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The count of one reason.
    public subscript(reason: SuppressionReason) -> Int {
        get { counts[reason.rawValue] ?? 0 }
        set { counts[reason.rawValue] = newValue == 0 ? nil : newValue }
    }

    /// Reads an object with a count for each reason; a reason that is missing was never the case.
    public init(from decoder: any Decoder) throws {
        counts = try decoder.singleValueContainer().decode([String: Int].self).filter { $0.value != 0 }
    }

    /// Writes an object with a count for each reason.
    public func encode(to encoder: any Encoder) throws {
        let all = SuppressionReason.allCases.map { ($0.rawValue, self[$0]) }
        var container = encoder.singleValueContainer()
        try container.encode(counts.merging(all) { known, _ in known })
    }
}
