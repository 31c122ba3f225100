extension StallReport {
    /// The index of the stack with the most samples; if several have the same number, the lowest index.
    ///
    /// Invalid samples, which may belong to a later turn, count only if there are no valid ones. `nil` without stacks.
    package var dominantStack: Int? {
        let valid = samples.filter { $0.isValid && $0.stack != nil }
        var counts: [Int: Int] = [:]
        for case let stack? in (valid.isEmpty ? samples : valid).map(\.stack) { counts[stack, default: 0] += 1 }
        return counts.max { ($0.value, -$0.key) < ($1.value, -$1.key) }?.key
    }
}
