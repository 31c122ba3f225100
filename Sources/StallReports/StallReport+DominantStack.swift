extension StallReport {
    /// The stack that most samples show; of several, the one that was seen first.
    ///
    /// Samples that another turn may have crept into count only where there are no others.
    package var dominantStack: Int? {
        let valid = samples.filter { $0.isValid && $0.stack != nil }
        var counts: [Int: Int] = [:]
        for case let stack? in (valid.isEmpty ? samples : valid).map(\.stack) { counts[stack, default: 0] += 1 }
        return counts.max { ($0.value, -$0.key) < ($1.value, -$1.key) }?.key
    }
}
