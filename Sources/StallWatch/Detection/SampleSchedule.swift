/// Decides when a stall is sampled: at the threshold, and then at growing intervals, up to a fixed number of samples.
///
/// Between samples, and before the threshold, the turn is *checked* at smaller intervals: the thread is only captured if it
/// has run since the last capture. A check shows when the thread went from one place to the next.
///
/// With the standard schedule and a threshold of 250 ms, samples are due at 0.25, 0.375, 0.56, 0.84, 1.3, 1.9, 2.8 …
/// seconds. Twenty samples last for nine minutes; after them an endless stall costs nothing.
struct SampleSchedule: Equatable {
    /// The largest number of samples of one stall.
    var budget: Int
    /// The ratio of a sample's age to the age of the sample before it.
    ///
    /// It is over 1.
    var growth: Double

    /// The ratio of a check's age to the age of the check before it.
    ///
    /// It bounds the error of the time for which a thread was in one place: half of the interval, 4 % of the age. The age
    /// doubles in nine checks.
    var checkGrowth = 1.08

    static let standard = SampleSchedule(budget: 20, growth: 1.5)

    /// The largest age at which a sample is due, in nanoseconds: 146 years.
    static let maximumAge: UInt64 = 1 << 62

    /// Returns the age of the turn at which the next sample is due.
    ///
    /// - Parameters:
    ///   - taken: The number of samples so far.
    ///   - age: The age of the turn at the last sample, in nanoseconds. The sample may have been late.
    /// - Returns: The age in nanoseconds, or `nil` if the budget is used up.
    func next(after taken: Int, age: UInt64) -> UInt64? {
        guard taken < budget else { return nil }
        return Self.grown(age, by: growth)
    }

    /// Returns the age of the turn at which the next check is due, after a check at `age`, in nanoseconds.
    func nextCheck(age: UInt64) -> UInt64 { Self.grown(age, by: checkGrowth) }

    private static func grown(_ age: UInt64, by factor: Double) -> UInt64 {
        UInt64(min(Double(age) * factor, Double(maximumAge)))
    }
}
