package import StallReports

/// Decides which stalls are reported (a pure value).
///
/// Stalls with the same fingerprint are reported at occurrence 1, 2, 4, 8, …, and when one lasts four times as long as
/// all that were reported, up to a limit per minute. The next report counts the stalls in between and sums up their
/// durations. If the limit suppresses a report that is due, the next stall with that fingerprint is due instead.
package struct RepeatPolicy {
    /// The most fingerprints remembered; beyond it, the least recently seen one begins at occurrence 1 again.
    static let maximumFingerprints = 1024
    static let muchLonger = 4.0
    private static let minute: UInt64 = 60_000_000_000

    package struct ReportingDecision: Equatable {
        /// Why the stall is only counted; `nil` if it is reported.
        package var suppressed: SuppressionReason?
        /// The suppressed stalls of its fingerprint between the previous report and this stall.
        package var repeats: Repeats
    }

    package struct Repeats: Equatable {
        package private(set) var count = 0
        /// Their durations; `nil` if there are none.
        package private(set) var durations: StallReport.RepeatedStalls?

        mutating func add(milliseconds: Double) {
            count += 1
            durations = StallReport.RepeatedStalls(
                totalMilliseconds: (durations?.totalMilliseconds ?? 0) + milliseconds,
                leastMilliseconds: min(durations?.leastMilliseconds ?? milliseconds, milliseconds),
                greatestMilliseconds: max(durations?.greatestMilliseconds ?? milliseconds, milliseconds))
        }
    }

    private struct Known {
        var seen = 0
        var due = 1
        var longest = 0.0
        var repeats = Repeats()
        var lastSeen: UInt64 = 0
    }

    let reportsPerMinute: Int
    /// Whether every stall is due; the limit per minute still applies.
    let reportsEveryRepeat: Bool
    private var known: [String: Known] = [:]
    /// The times of the latest reports in monotonic nanoseconds, oldest first; at most `reportsPerMinute`.
    private var recent: [UInt64] = []

    package init(reportsPerMinute: Int, reportsEveryRepeat: Bool = false) {
        self.reportsPerMinute = reportsPerMinute
        self.reportsEveryRepeat = reportsEveryRepeat
    }

    package mutating func decide(
        _ fingerprint: String, lasting milliseconds: Double, at now: UInt64
    ) -> ReportingDecision {
        var entry = known[fingerprint] ?? Known()
        defer {
            known[fingerprint] = entry
            forgetOldest()
        }
        entry.seen += 1
        entry.lastSeen = now
        let isDue = reportsEveryRepeat || entry.seen >= entry.due || milliseconds >= entry.longest * Self.muchLonger
        if isDue { recent.removeAll { now &- $0 >= Self.minute } }
        guard isDue, recent.count < reportsPerMinute else {
            defer { entry.repeats.add(milliseconds: milliseconds) }
            return ReportingDecision(suppressed: isDue ? .rateLimit : .repeated, repeats: entry.repeats)
        }
        recent.append(now)
        while entry.due <= entry.seen { entry.due *= 2 }
        entry.longest = max(entry.longest, milliseconds)
        defer { entry.repeats = Repeats() }
        return ReportingDecision(repeats: entry.repeats)
    }

    private mutating func forgetOldest() {
        guard known.count > Self.maximumFingerprints,
            let oldest = known.min(by: { $0.value.lastSeen < $1.value.lastSeen })
        else { return }
        known[oldest.key] = nil
    }
}
