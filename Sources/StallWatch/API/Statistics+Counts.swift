import StallReports

extension StallMonitor.Statistics {
    init(_ counts: ReportCounts.Counts) {
        self.init()
        stalls = counts.stalls
        suppressed = counts.suppressed
        reportsDropped = counts.reportsDropped
        reportsLost = counts.reportsLost
        reportsRemoved = counts.reportsRemoved
        reportsRecovered = counts.reportsRecovered
        failedWrites = counts.failedWrites
        lastWriteError = counts.lastWriteError
    }
}

extension StallMonitor.LoopStatistics {
    init(
        label: String, watchedNanoseconds: UInt64, loops: [LoopMonitor], stalls: ReportCounts.StallTotals?
    ) {
        let turns = loops.map { (loop: $0, turns: $0.recorder.histogram.snapshot()) }
        let sum = LoopInterval(label: label, nanoseconds: max(watchedNanoseconds, 1), turns)
        self.init(
            label: label, watchedNanoseconds: watchedNanoseconds,
            turns: TurnHistogram.Snapshot(sumOf: turns.map(\.turns)), stalls: stalls,
            earlyStops: loops.reduce(0) { $0 + $1.earlyStops }, sum: sum,
            isThresholdAdaptive: loops.contains(where: \.isThresholdAdaptive)
        )
    }

    init(
        label: String, watchedNanoseconds: UInt64, turns: TurnHistogram.Snapshot, stalls: ReportCounts.StallTotals?,
        earlyStops: Int, sum: LoopInterval, isThresholdAdaptive: Bool = false
    ) {
        let watched = seconds(watchedNanoseconds)
        let hours = watched / 3_600
        let stalled = seconds(stalls?.nanoseconds ?? 0)
        let count = stalls?.count ?? 0
        self.init(
            label: label, watchedSeconds: watched, turns: turns.counts.reduce(0, &+),
            busySeconds: seconds(turns.busyNanoseconds), stalls: count, stallSeconds: stalled,
            stallsPerHour: hours > 0 ? Double(count) / hours : 0,
            stallSecondsPerHour: hours > 0 ? stalled / hours : 0, earlyStops: earlyStops,
            thresholdMilliseconds: sum.threshold * 1_000, isThresholdAdaptive: isThresholdAdaptive,
            utilization: sum.utilization, meanMilliseconds: sum.delay.map { $0.mean * 1_000 },
            p50Milliseconds: sum.delay.map { $0.p50 * 1_000 }, p90Milliseconds: sum.delay.map { $0.p90 * 1_000 },
            p99Milliseconds: sum.delay.map { $0.p99 * 1_000 },
            longestMilliseconds: sum.delay.map { $0.longest * 1_000 },
            latency: turns.counts.indices.compactMap { index in
                let count = turns.counts[index]
                guard count > 0 else { return nil }
                return StallMonitor.LatencyBucket(
                    belowMicroseconds: TurnHistogram.upperBound(of: index).map { Double($0) / 1_000 }, turns: count
                )
            }
        )
    }
}

private func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1_000_000_000 }
