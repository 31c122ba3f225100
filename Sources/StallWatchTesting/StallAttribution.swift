import StallReports
import StallSymbols

/// The tests that a stall belongs to, by the functions on its stacks and by the tests that ran: a pure decision.
///
/// Each sample is decided by itself, and counts with the time that it stands for:
///
/// 1. A sample whose stack shows the function of one test in scope belongs to that test. The callers of an async function
///    are part of the stack, and so is the function around a closure.
/// 2. A sample whose stack shows that Swift Testing runs another test belongs to none of those in scope.
/// 3. Any other sample belongs to the only test that was in scope when the stall began. If several were, it is not known
///    to which of them it belongs. If none was, it belongs to code that no test watches.
///
/// Samples without a stack are shared out like the others.
struct StallAttribution {
    /// A test in scope.
    struct Candidate {
        var function: WatchedFunction?
        var began: Timestamp
        /// `nil` while it runs.
        var ended: Timestamp?
    }

    /// A part of the stall.
    struct Part {
        /// The report with the samples of this part only.
        var report: StallReport
        /// The share of the stall's duration, 0 to 1.
        var share: Double
    }

    /// The owner of a sample.
    private enum Owner: Hashable {
        case test(Int)
        /// One of these tests, at least two.
        case oneOf(Set<Int>)
        case unwatched
    }

    /// The parts of tests, by the index of the candidate.
    private(set) var parts: [Int: Part] = [:]
    /// The part that belongs to one of several tests, and the indices of these, ascending.
    private(set) var unknown: (part: Part, candidates: [Int])?

    /// - Parameters:
    ///   - report: A symbolicated report with valid indices.
    ///   - candidates: The tests that watch the loop and ran at some time during the stall.
    init(_ report: StallReport, among candidates: [Candidate]) {
        let running = candidates.indices.filter { index in
            candidates[index].began <= report.startedAt
                && candidates[index].ended.map { $0 >= report.startedAt } ?? true
        }
        let unnamed = Self.owner(among: Set(running))
        // The owner of each sample; nil without a stack.
        let owners = report.samples.map { Self.owner(of: $0, report, candidates, unnamed) }
        var shares: [Owner: Double] = [:]
        for (owner, share) in zip(owners, report.sampleShares) {
            if let owner { shares[owner, default: 0] += share }
        }
        let total = shares.values.reduce(0, +)
        if total <= 0 { shares = [unnamed: 1] }

        func part(_ isIncluded: (Owner) -> Bool) -> Part? {
            let share = shares.filter { isIncluded($0.key) }.values.reduce(0, +) / (total > 0 ? total : 1)
            guard share > 0 else { return nil }
            return Part(report: Self.report(report, share) { owners[$0].map(isIncluded) ?? true }, share: share)
        }
        for case .test(let index) in shares.keys { parts[index] = part { $0 == .test(index) } }
        let possible = shares.keys.reduce(into: Set<Int>()) { possible, owner in
            if case .oneOf(let tests) = owner { possible.formUnion(tests) }
        }
        unknown = part { if case .oneOf = $0 { true } else { false } }.map { ($0, possible.sorted()) }
    }

    private static func owner(among tests: Set<Int>) -> Owner {
        guard let first = tests.first else { return .unwatched }
        return tests.count == 1 ? .test(first) : .oneOf(tests)
    }

    /// The owner of a sample; `nil` if it has no stack.
    private static func owner(
        of sample: StallReport.Sample, _ report: StallReport, _ candidates: [Candidate], _ unnamed: Owner
    ) -> Owner? {
        let stacks = Set([sample.stack].compactMap(\.self) + (sample.workers ?? []).compactMap(\.stack))
        guard !stacks.isEmpty else { return nil }
        let frames = stacks.flatMap { report.stacks[$0].map { report.frames[$0] } }
        let named = candidates.indices.filter { index in
            candidates[index].function.map { frames.contains(where: $0.contains) } ?? false
        }
        if !named.isEmpty { return owner(among: Set(named)) }
        let innermost = sample.stack.map { report.stacks[$0].map { report.frames[$0] } } ?? []
        return innermost.contains(where: \.runsTest) ? .unwatched : unnamed
    }

    /// Returns the report with some of its samples only, or as it is if those are all.
    private static func report(_ report: StallReport, _ share: Double, of isIncluded: (Int) -> Bool) -> StallReport {
        var part = report
        part.samples = report.samples.indices.filter(isIncluded).map { report.samples[$0] }
        guard part.samples.count < report.samples.count else { return report }
        part.durationMilliseconds = report.durationMilliseconds * share
        part.culprit = nil
        if let stack = part.dominantStack, case .culprit(let culprit) = stack.blame { part.culprit = culprit }
        part.fingerprint = Fingerprint(part).text
        return part
    }
}

extension StallReport.Frame {
    /// Whether the frame is Swift Testing's function that runs one test case.
    ///
    /// It is a caller of every test, and of no task that a test starts.
    var runsTest: Bool { function?.contains("Runner._runTestCase(") ?? false }
}
