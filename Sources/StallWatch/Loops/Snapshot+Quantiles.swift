extension TurnHistogram.Snapshot {
    /// The number of turns.
    var turns: UInt64 { counts.reduce(0, &+) }

    /// Returns the turns since an earlier snapshot of the same histogram; all of them without one.
    func since(_ earlier: Self?) -> Self {
        guard let earlier else { return self }
        return Self(
            counts: zip(counts, earlier.counts).map { $0 &- $1 },
            busyNanoseconds: busyNanoseconds &- earlier.busyNanoseconds
        )
    }

    /// Returns an upper bound of the duration of a fraction of the turns, in nanoseconds.
    ///
    /// - Parameter quantile: The fraction: 0 to 1.
    /// - Returns: The bound, at most 12.5 % too large; 0 if there are no turns, and 4.8 hours for longer ones.
    func upperBound(quantile: Double) -> UInt64 {
        let rank = max(UInt64((quantile * Double(turns)).rounded(.up)), 1)
        var seen: UInt64 = 0
        for (bucket, count) in counts.enumerated() {
            seen &+= count
            guard seen >= rank else { continue }
            return TurnHistogram.upperBound(of: bucket) ?? TurnHistogram.longestBound
        }
        return 0
    }
}
