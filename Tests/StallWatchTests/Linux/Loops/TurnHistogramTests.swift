import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct TurnHistogramTests {
    @Test func everyDurationIsInsideItsBucket() {
        var durations: [UInt64] = [0, 1, 1_023, 1_024, 1_025, .max, 1 << 44, 1 << 44 - 1, 1 << 63]
        for power in 0..<64 {
            for offset in [-1, 0, 1] {
                durations.append((UInt64(1) << UInt64(power)) &+ UInt64(bitPattern: Int64(offset)))
            }
        }
        for duration in durations {
            let bucket = TurnHistogram.bucket(of: duration)
            #expect((0..<TurnHistogram.bucketCount).contains(bucket))
            if let upper = TurnHistogram.upperBound(of: bucket) { #expect(duration < upper) }
            if bucket > 0, let lower = TurnHistogram.upperBound(of: bucket - 1) { #expect(duration >= lower) }
        }
    }

    @Test func aBucketIsAtMostAnEighthWide() throws {
        for bucket in 1..<(TurnHistogram.bucketCount - 1) {
            let lower = try #require(TurnHistogram.upperBound(of: bucket - 1))
            let upper = try #require(TurnHistogram.upperBound(of: bucket))
            #expect(upper > lower)
            #expect(Double(upper - lower) / Double(lower) <= 0.125)
        }
        #expect(TurnHistogram.upperBound(of: TurnHistogram.bucketCount - 1) == nil)
    }

    @Test func countsAndTimeAddUp() {
        let histogram = TurnHistogram()
        for duration: UInt64 in 1...1_000 { histogram.record(duration * 1_000) }
        let other = TurnHistogram()
        other.record(1 << 50)
        let sum = TurnHistogram.Snapshot(sumOf: [histogram.snapshot(), other.snapshot()])
        #expect(sum.counts.reduce(0, +) == 1_001)
        #expect(sum.counts.last == 1)
        #expect(sum.busyNanoseconds == 500_500_000 + 1 << 50)
    }

    @Test func quantilesAreAtMostAnEighthTooLarge() throws {
        let histogram = TurnHistogram()
        for duration: UInt64 in 1...1_000 { histogram.record(duration * 1_000_000) }
        let turns = histogram.snapshot()
        let sum = LoopInterval(
            label: "main", turns: turns.turns,
            delay: .init(
                mean: 0.5, p50: Double(turns.upperBound(quantile: 0.5)) / 1e9, p90: 0, p99: 0,
                longest: Double(turns.upperBound(quantile: 1)) / 1e9),
            utilization: 0.07, threshold: 0.25)
        let loop = StallMonitor.LoopStatistics(
            label: "main", watchedNanoseconds: 7_200_000_000_000, turns: turns,
            stalls: ReportCounts.StallTotals(count: 4, nanoseconds: 9_000_000_000), earlyStops: 0, sum: sum
        )
        #expect(loop.p50Milliseconds == loop.latencyMicroseconds(quantile: 0.5).map { $0 / 1_000 })
        #expect(loop.longestMilliseconds == loop.latencyMicroseconds(quantile: 1).map { $0 / 1_000 })
        #expect(loop.thresholdMilliseconds == 250)
        #expect(loop.utilization == 0.07)
        for (quantile, milliseconds) in [(0.0, 1.0), (0.5, 500), (0.99, 990), (1, 1_000)] {
            let found = try #require(loop.latencyMicroseconds(quantile: quantile)) / 1_000
            #expect((milliseconds...(milliseconds * 1.126)).contains(found), "\(quantile): \(found)")
        }
        #expect(loop.stallsPerHour == 2)
        #expect(loop.stallSecondsPerHour == 4.5)
        #expect(loop.turns == 1_000)
    }
}
