import Testing

@testable import StallWatch

private let ms: UInt64 = 1_000_000

/// From which age a loop's turns are sampled early, and how many may be stopped for it.
@Suite struct EarlySamplingTests {
    private let threshold = 250 * ms

    private func turns(_ counts: [(milliseconds: UInt64, count: Int)]) -> TurnHistogram.Snapshot {
        let histogram = TurnHistogram()
        for (milliseconds, count) in counts { for _ in 0..<count { histogram.record(milliseconds * ms) } }
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

    @Test func `the shortest age that one turn in a thousand exceeds is unusual`() {
        let short = turns([(1, 9_990), (40, 10)])
        #expect(EarlySampling.unusualAge(of: short, threshold: threshold) == threshold / 8)
        let longer = turns([(1, 9_989), (40, 11)])
        #expect(EarlySampling.unusualAge(of: longer, threshold: threshold) == threshold / 4)
        let long = turns([(1, 9_900), (100, 100)])
        #expect(EarlySampling.unusualAge(of: long, threshold: threshold) == threshold / 2)
    }

    @Test func `no age is unusual for a loop whose turns are nearly stalls`() {
        #expect(EarlySampling.unusualAge(of: turns([(1, 900), (200, 100)]), threshold: threshold) == nil)
    }

    @Test func stallsDoNotMakeLongTurnsUsual() {
        let stalling = turns([(1, 900), (300, 50), (1_000, 50)])
        #expect(EarlySampling.unusualAge(of: stalling, threshold: threshold) == threshold / 8)
    }

    @Test func fewTurnsSayNothing() {
        #expect(EarlySampling.unusualAge(of: turns([(200, 999)]), threshold: threshold) == threshold / 8)
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

    @Test func `no loop has no progress`() {
        #expect(LoopProgress.merged([]) == [])
    }
}
