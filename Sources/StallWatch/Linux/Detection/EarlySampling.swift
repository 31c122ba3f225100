/// Decides from which age the turns of a loop are sampled before the threshold, and which of them may be stopped for it.
///
/// A pure value. A turn is sampled early from the age that is unusual for its loop: of an eighth, a quarter and a half
/// of the threshold, the shortest that at most one in ``turnsPerStop`` of the loop's turns has exceeded. Turns that
/// became stalls do not count: they are what early samples are for. Samples of a blocked thread cost it nothing. A
/// running thread has to be stopped, so there is a ration: one turn at the beginning, and one more for each
/// ``turnsPerStop`` turns. A turn that becomes a stall uses nothing of it.
struct EarlySampling {
    /// The least age of an early sample, in nanoseconds: waits for a disk or a network are shorter.
    static let leastAge: UInt64 = 25_000_000
    /// The number of turns per turn that may be unusual, and per turn that may be stopped.
    static let turnsPerStop: UInt64 = 1_000
    /// The largest number of turns that may be stopped one after another.
    static let maximumCredits = 4

    private(set) var credits = 1
    /// The number of turns at which the next credit is due, and the histogram is read again.
    private var nextReview: UInt64 = EarlySampling.turnsPerStop
    private var reviewed: (threshold: UInt64, age: UInt64?)?

    /// Returns the possible ages of early samples, shortest first: ``leastAge`` to three quarters of the threshold.
    static func ages(threshold: UInt64) -> [UInt64] {
        ([8, 4, 2] as [UInt64]).map { max(threshold / $0, leastAge) }.reduce(into: []) { ages, age in
            if age <= threshold / 4 * 3, ages.last != age { ages.append(age) }
        }
    }

    /// Returns the lowest candidate age that at most one in ``turnsPerStop`` turns exceeds, in nanoseconds.
    ///
    /// With fewer turns: the lowest candidate. `nil` if more turns exceed each of them.
    static func unusualAge(of turns: TurnHistogram.Snapshot, threshold: UInt64) -> UInt64? {
        let ages = ages(threshold: threshold)
        let total = turns.counts.reduce(0, &+)
        guard total >= turnsPerStop else { return ages.first }
        let stalls = TurnHistogram.bucket(of: threshold)
        return ages.first { age in
            let longer = turns.counts[min(TurnHistogram.bucket(of: age), stalls)..<stalls].reduce(0, &+)
            return longer <= total / turnsPerStop
        }
    }

    /// Returns the age from which the loop's turns are sampled, in nanoseconds, from the histogram of at most
    /// ``turnsPerStop`` turns ago, unless the threshold has changed; `nil` if early samples are not taken.
    mutating func age(atTurn turn: UInt64, threshold: UInt64, _ histogram: () -> TurnHistogram.Snapshot) -> UInt64? {
        let isDue = turn >= nextReview
        if isDue {
            let earned = 1 + (turn - nextReview) / Self.turnsPerStop
            credits = min(credits + Int(min(earned, UInt64(Self.maximumCredits))), Self.maximumCredits)
            nextReview += earned * Self.turnsPerStop
        }
        if !isDue, let reviewed, reviewed.threshold == threshold { return reviewed.age }
        let age = Self.unusualAge(of: histogram(), threshold: threshold)
        reviewed = (threshold, age)
        return age
    }

    mutating func spendCredit() { credits -= 1 }

    mutating func returnCredit() { credits = min(credits + 1, Self.maximumCredits) }
}
