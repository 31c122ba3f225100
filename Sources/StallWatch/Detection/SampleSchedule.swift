/// When a stall is sampled: at the threshold, and then at intervals that grow, up to a fixed number of samples.
///
/// With the standard schedule and a threshold of 250 ms: at 0.25, 0.375, 0.56, 0.84, 1.3, 1.9, 2.8 … seconds. Twenty
/// samples last for nine minutes; an endless stall costs no more.
struct SampleSchedule: Equatable {
    /// Samples of one stall at most.
    var budget: Int
    /// Each sample is taken at this many times the age of the one before it. Over 1.
    var growth: Double

    static let standard = SampleSchedule(budget: 20, growth: 1.5)

    /// When sample number `taken + 1` is due, or `nil` when the budget is used up.
    func next(after taken: Int, start: UInt64, threshold: UInt64) -> UInt64? {
        guard taken < budget else { return nil }
        var age = Double(threshold)
        for _ in 0..<taken { age *= growth }
        return start &+ UInt64(min(age, Double(UInt64.max / 4)))
    }
}
