package import StallReports

extension StallReport {
    /// The stack that explains the largest part of a stall.
    package struct DominantStack {
        /// The index of the stack.
        package var stack: Int
        /// The function to blame for it.
        package var blame: Blame
        /// The share of the stall's duration that stacks with the same function to blame stand for, 0 to 1.
        package var share: Double
    }

    /// The stack that explains the largest part of the stall; `nil` without a stack of the stalled turn.
    ///
    /// Stacks whose function to blame is the same count together: its callees and lines may differ. Of these stacks, it is
    /// the one that stands for the most time. Of equal ones, the one with the lowest index.
    ///
    /// The report's indices must be valid.
    package var dominantStack: DominantStack? {
        var shares: [Int: Double] = [:]
        for (sample, share) in zip(samples, sampleShares) {
            if sample.isValid, let stack = sample.stack { shares[stack, default: 0] += share }
        }
        var groups: [Place: DominantStack] = [:]
        for (stack, share) in shares.sorted(by: { ($1.value, $0.key) < ($0.value, $1.key) }) {
            let blame = Self.blame(for: stacks[stack].map { frames[$0] }, images: images)
            groups[Place(blame), default: DominantStack(stack: stack, blame: blame, share: 0)].share += share
        }
        return groups.values.max { ($0.share, $1.stack) < ($1.share, $0.stack) }
    }

    /// What stacks with the same function to blame have in common.
    private struct Place: Hashable {
        var function: String?
        var image: String?
        var file: String?

        init(_ blame: Blame) {
            guard case .culprit(let culprit) = blame else { return }
            (function, image, file) = (culprit.function, culprit.image, culprit.file)
        }
    }
}
