import StallReports

/// Decides which stalls are reported in full: the 1st, 2nd, 4th, 8th … of each fingerprint, and at most so many a
/// minute.
///
/// A pure value: it is told fingerprints and the time. The stalls between are counted in the next report of the same
/// fingerprint. One that is due while too many reports were made within a minute is made up for by the next of its
/// kind.
struct RepeatPolicy {
    /// Fingerprints that are remembered; past it, the one that has not come for longest is forgotten, so that its next
    /// stall is reported as if it were the first.
    static let maximumFingerprints = 1024
    private static let minute: UInt64 = 60_000_000_000

    /// What becomes of a stall.
    enum ReportingDecision: Equatable {
        /// It is reported, together with the number of those that were not, since the last one that was.
        case report(repeats: Int)
        /// It is only counted.
        case suppressed(SuppressionReason)
    }

    private struct Known {
        var seen = 0
        /// The count of stalls at which the next report is due: a power of two.
        var due = 1
        /// Stalls since the last report.
        var repeats = 0
        var lastSeen: UInt64 = 0
    }

    let reportsPerMinute: Int
    /// Whether every stall is due, and only the limit a minute counts.
    let reportsEveryRepeat: Bool
    private var known: [String: Known] = [:]
    /// When the last reports were made, in monotonic nanoseconds: `reportsPerMinute` of them at most, oldest first.
    private var recent: [UInt64] = []

    init(reportsPerMinute: Int, reportsEveryRepeat: Bool = false) {
        self.reportsPerMinute = reportsPerMinute
        self.reportsEveryRepeat = reportsEveryRepeat
    }

    /// Counts a stall that is over, and says what becomes of it.
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

    /// Stalls with this fingerprint since the last report of it.
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
