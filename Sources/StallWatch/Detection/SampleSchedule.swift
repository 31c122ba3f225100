/// When a stall is sampled: at the threshold, and then at intervals that grow, up to a fixed number of samples.
///
/// With the standard schedule and a threshold of 250 ms: at 0.25, 0.375, 0.56, 0.84, 1.3, 1.9, 2.8 … seconds. Twenty
/// samples last for nine minutes; an endless stall costs no more.
struct SampleSchedule: Equatable {
    /// Samples of one stall at most.
    var budget: Int
    /// Each sample is taken at this many times the age of the one before it.
    ///
    /// Over 1.
    var growth: Double

    static let standard = SampleSchedule(budget: 20, growth: 1.5)

    /// The oldest that a turn gets before a sample is due, in nanoseconds: 146 years.
    static let maximumAge: UInt64 = 1 << 62

    /// How old the turn is when the next sample is due, or `nil` when the budget is used up.
    ///
    /// `taken` is the number of samples that there are, and `age` how old the turn was at the last of them, in
    /// nanoseconds. That may be later than it was due.
    func next(after taken: Int, age: UInt64) -> UInt64? {
        guard taken < budget else { return nil }
        return UInt64(min(Double(age) * growth, Double(Self.maximumAge)))
    }
}
