import StallReports

/// The times at which a profile takes its samples: one in each interval, at a random moment of it.
///
/// At equal distances, work that repeats in step with the sampling would be seen in the same place each time.
struct ProfileClock {
    /// The time between two samples on average, in nanoseconds.
    let interval: UInt64
    /// When the profile begins, in monotonic nanoseconds.
    let begin: UInt64
    private let intervals: UInt64
    private var next: UInt64 = 0
    /// The number of intervals without a sample, because the profiler was late.
    private(set) var missed = 0

    init(_ plan: ProfilePlan, begin: UInt64) {
        // In range: both numbers are positive, and at most 300 and 100.
        interval = 1_000_000_000 / UInt64(plan.hertz)
        intervals = UInt64(plan.seconds) * UInt64(plan.hertz)
        self.begin = begin
    }

    /// When the profile ends, in monotonic nanoseconds.
    var end: UInt64 { begin &+ intervals &* interval }

    /// Returns when the next sample is due, in monotonic nanoseconds.
    ///
    /// Intervals that are over are left out: to make up for them would show one moment many times.
    ///
    /// - Parameters:
    ///   - now: The time, in monotonic nanoseconds.
    ///   - generator: The source of the random moments.
    /// - Returns: The time; `nil` after the last interval.
    mutating func nextSample(at now: UInt64, _ generator: inout some RandomNumberGenerator) -> UInt64? {
        let current = min((now &- min(begin, now)) / interval, intervals)
        if current > next {
            missed += Int(current - next)
            next = current
        }
        guard next < intervals else { return nil }
        defer { next += 1 }
        return begin &+ next &* interval &+ UInt64.random(in: 0..<interval, using: &generator)
    }
}
