import StallReports

/// Decides which stalls are reported.
///
/// Stalls with the same fingerprint are reported at occurrence 1, 2, 4, 8, …, up to a limit per minute. The next report
/// of the fingerprint counts the stalls in between. If the limit suppresses a report that is due, the next stall with
/// that fingerprint is due instead. A pure value: the caller supplies fingerprints and times.
struct RepeatPolicy {
    /// The maximum number of remembered fingerprints.
    ///
    /// When it is exceeded, the policy forgets the least recently seen fingerprint. That fingerprint's next stall is
    /// reported as occurrence 1.
    static let maximumFingerprints = 1024
    private static let minute: UInt64 = 60_000_000_000

    /// Whether a stall is reported.
    enum ReportingDecision: Equatable {
        /// The stall is reported; `repeats` counts the suppressed stalls of its fingerprint since the previous report.
        case report(repeats: Int)
        /// The stall is only counted.
        case suppressed(SuppressionReason)
    }

    private struct Known {
        var seen = 0
        /// The occurrence at which the next report is due: a power of two.
        var due = 1
        /// Stalls since the last report.
        var repeats = 0
        var lastSeen: UInt64 = 0
    }

    let reportsPerMinute: Int
    /// Whether every stall is due; the limit per minute still applies.
    let reportsEveryRepeat: Bool
    private var known: [String: Known] = [:]
    /// The times of the latest reports in monotonic nanoseconds, oldest first; at most `reportsPerMinute`.
    private var recent: [UInt64] = []

    init(reportsPerMinute: Int, reportsEveryRepeat: Bool = false) {
        self.reportsPerMinute = reportsPerMinute
        self.reportsEveryRepeat = reportsEveryRepeat
    }

    /// Counts a finished stall and decides whether it is reported.
    ///
    /// - Parameters:
    ///   - fingerprint: The stall's fingerprint.
    ///   - now: The time, in monotonic nanoseconds.
    /// - Returns: The decision.
    mutating func judge(_ fingerprint: String, at now: UInt64) -> ReportingDecision {
        var entry = known[fingerprint] ?? Known()
        defer {
            known[fingerprint] = entry
            forgetOldest()
        }
        entry.seen += 1
        entry.lastSeen = now
        guard reportsEveryRepeat || entry.seen >= entry.due else {
            entry.repeats += 1
            return .suppressed(.repeated)
        }
        recent.removeAll { now &- $0 >= Self.minute }
        guard recent.count < reportsPerMinute else {
            entry.repeats += 1
            return .suppressed(.rateLimit)
        }
        recent.append(now)
        while entry.due <= entry.seen { entry.due *= 2 }
        defer { entry.repeats = 0 }
        return .report(repeats: entry.repeats)
    }

    /// Returns the number of stalls with this fingerprint since its last report.
    func repeats(of fingerprint: String) -> Int {
        known[fingerprint]?.repeats ?? 0
    }

    private mutating func forgetOldest() {
        guard known.count > Self.maximumFingerprints,
            let oldest = known.min(by: { $0.value.lastSeen < $1.value.lastSeen })
        else { return }
        known[oldest.key] = nil
    }
}
