extension StallReport {
    /// The share of the stall's duration that each sample stands for; the shares add up to 1, or are all 0.
    ///
    /// Reports of versions that did not measure it have none. There, each moment counts for the nearest sample, and
    /// samples that may show a later turn count only if there is no other.
    package var sampleShares: [Double] {
        let known = samples.map { $0.weightMilliseconds ?? 0 }
        let total = known.reduce(0, +)
        if total > 0 { return known.map { $0 / total } }
        let valid = samples.indices.filter { samples[$0].isValid }
        let counted = valid.isEmpty ? Array(samples.indices) : valid
        let times = counted.map { min(samples[$0].atMilliseconds, durationMilliseconds) }
        let ends = zip(times, times.dropFirst()).map { ($0 + $1) / 2 } + [durationMilliseconds]
        var shares = [Double](repeating: 0, count: samples.count)
        guard durationMilliseconds > 0 else {
            for index in counted { shares[index] = 1 / Double(counted.count) }
            return shares
        }
        var begin = 0.0
        for (index, end) in zip(counted, ends) where end > begin {
            shares[index] = (end - begin) / durationMilliseconds
            begin = end
        }
        return shares
    }
}
