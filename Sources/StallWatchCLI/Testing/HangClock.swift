/// Decides when a run without progress counts as a hang: once in each time without progress.
struct HangClock {
    /// The time without progress that is a hang, in nanoseconds.
    let limit: UInt64
    /// The time of the last progress, in monotonic nanoseconds.
    private(set) var lastProgress: UInt64
    private var isReported = false

    init(limit: UInt64, now: UInt64) {
        self.limit = limit
        lastProgress = now
    }

    mutating func noteProgress(at time: UInt64) {
        lastProgress = time
        isReported = false
    }

    /// When to decide next, in monotonic nanoseconds.
    ///
    /// After a report, progress may come at any time, so the next decision is a limit away.
    func nextDecision(after now: UInt64) -> UInt64 {
        isReported ? now &+ limit : max(lastProgress &+ limit, now)
    }

    /// Returns whether a hang is to be reported now.
    mutating func isDue(at now: UInt64) -> Bool {
        guard !isReported, now &- min(lastProgress, now) >= limit else { return false }
        isReported = true
        return true
    }
}
