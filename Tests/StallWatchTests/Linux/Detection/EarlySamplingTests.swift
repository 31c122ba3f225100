import Testing

@testable import StallWatch

private let ms: UInt64 = 1_000_000

/// From which age a loop's turns are sampled early, and how many may be stopped for it.
@Suite struct EarlySamplingTests {
    private let threshold = 250 * ms

    private func turns(_ counts: [[UInt64]]) -> TurnHistogram.Snapshot {
        let histogram = TurnHistogram()
        for turns in counts { for _ in 0..<turns[1] { histogram.record(turns[0] * ms) } }
        return histogram.snapshot()
    }

    // MARK: The age

    @Test(
        arguments: [
            (250, [31_250_000, 62_500_000, 125_000_000]), (100, [25 * ms, 50 * ms]), (50, [25 * ms]), (30, []),
            (10_000, [1_250 * ms, 2_500 * ms, 5_000 * ms]),
        ] as [(UInt64, [UInt64])])
    func earlySamplesBeginAtAPartOfTheThreshold(threshold: UInt64, ages: [UInt64]) {
        #expect(EarlySampling.ages(threshold: threshold * ms) == ages)
    }

    /// Milliseconds and numbers of turns, and the part of the threshold.
    @Test(
        arguments: [
            ([[1, 9_990], [40, 10]], 8), ([[1, 9_989], [40, 11]], 4), ([[1, 9_900], [100, 100]], 2),
            // Turns that are nearly stalls, stalls among short turns, and too few turns.
            ([[1, 900], [200, 100]], nil), ([[1, 900], [300, 50], [1_000, 50]], 8), ([[200, 999]], 8),
        ] as [([[UInt64]], UInt64?)])
    func `an age that few turns exceed is unusual`(counts: [[UInt64]], part: UInt64?) {
        #expect(EarlySampling.unusualAge(of: turns(counts), threshold: threshold) == part.map { threshold / $0 })
    }

    @Test func `the histogram is read once per thousand turns and for a new threshold`() {
        var early = EarlySampling()
        var reads = 0
        func read() -> TurnHistogram.Snapshot {
            reads += 1
            return turns([])
        }
        for turn in 0..<5_000 as Range<UInt64> { _ = early.age(atTurn: turn, threshold: threshold, read) }
        #expect(reads == 5)
        #expect(early.age(atTurn: 5_000, threshold: 50 * ms, read) == 25 * ms)
        #expect(reads == 6)
    }

    // MARK: The ration

    @Test func `the first turn and one in a thousand may be stopped`() {
        var early = EarlySampling()
        var stops = 0
        for turn in 0..<20_000 as Range<UInt64> {
            _ = early.age(atTurn: turn, threshold: threshold) { turns([]) }
            // Every turn is long, and is stopped if it may be.
            guard early.credits > 0 else { continue }
            early.spendCredit()
            stops += 1
        }
        #expect(stops == 20, "the first one, and one per thousand turns")
    }

    @Test func creditsDoNotGrowWithoutABound() {
        var early = EarlySampling()
        _ = early.age(atTurn: 1_000_000, threshold: threshold) { turns([]) }
        #expect(early.credits == EarlySampling.maximumCredits)
    }
}

@Suite struct LoopProgressTests {
    private func loop(_ label: String, _ state: LoopProgress.State, _ since: UInt64 = 1) -> LoopProgress {
        LoopProgress(label: label, state: state, since: since)
    }

    @Test func `of two monitors of a loop the worse state counts`() {
        #expect(
            LoopProgress.merged([
                loop("main", .starting), loop("worker", .running), loop("main", .running, 5),
                loop("worker", .stalled, 7),
            ]) == [loop("main", .running, 5), loop("worker", .stalled, 7)])
        #expect(LoopProgress.merged([loop("a", .stalled), loop("a", .held)]) == [loop("a", .stalled)])
        #expect(LoopProgress.merged([loop("a", .ended), loop("a", .running)]) == [loop("a", .running)])
    }

    @Test func `of equal states the older one counts`() {
        #expect(LoopProgress.merged([loop("a", .stalled, 9), loop("a", .stalled, 3)]) == [loop("a", .stalled, 3)])
        #expect(LoopProgress.merged([loop("a", .stalled, 3), loop("a", .stalled, 9)]) == [loop("a", .stalled, 3)])
    }
}
