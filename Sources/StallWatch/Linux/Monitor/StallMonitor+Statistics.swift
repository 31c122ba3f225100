import LinuxSupport
import StackCapture
import StallReports
import Synchronization

extension StallMonitor {
    /// A sequence of the reports of all stalls that end from now on.
    ///
    /// Every access creates a sequence of its own, which ends when the monitor stops. A sequence buffers 64 reports. If
    /// its reader is slower, the oldest are dropped and counted in ``Statistics/reportsDropped``. Reading costs the
    /// monitored threads nothing.
    public var reports: AsyncStream<StallReport> { reporter.streams.stream() }

    /// The counts of the monitor's work so far, and the state of its loops.
    ///
    /// Reading them costs the monitored threads nothing.
    public var statistics: Statistics {
        let state = state.withLock { $0 }
        let end = state.stopped ?? monotonicNow()
        let counts = reporter.counts.current
        var statistics = Statistics(counts)
        statistics.suppressed.add(watchdog.suppressed.current)
        statistics.unwindDisagreements = Int(clamping: CUnwindEngine.disagreements)
        statistics.unwatchedOperations = operations.registry.unwatched
        statistics.loops = state.loops.map { label, monitors in
            let since = max(state.started ?? end, state.watchedSince[label] ?? end)
            return LoopStatistics(
                label: label, watchedNanoseconds: end &- min(since, end), loops: monitors,
                stalls: counts.stallsByLoop[label]
            )
        }
        .sorted { $0.label < $1.label }
        return statistics
    }

    /// The monitors of every loop, sorted by label.
    var watchedLoops: [[LoopMonitor]] {
        state.withLock { state in state.loops.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// Returns the state of every loop, sorted by label; that costs the monitored threads nothing.
    func loopStates(at now: UInt64) -> [ControlAnswer.LoopState] {
        let state = state.withLock { $0 }
        let counts = reporter.counts.current
        return state.loops.map { label, monitors in
            let turn = monitors.compactMap { $0.turnDuration(at: now) }.max()
            let since = max(state.started ?? now, state.watchedSince[label] ?? now)
            let turns = TurnHistogram.Snapshot(sumOf: monitors.map { $0.recorder.histogram.snapshot() })
            let busy = turns.busyNanoseconds
            let watched = Double(max(now &- min(since, now), 1))
            return ControlAnswer.LoopState(
                label: label, turnMilliseconds: turn.map { Double($0) / 1_000_000 },
                // Every label has at least one monitor, and all have the same threshold.
                thresholdMilliseconds: Double(monitors.first?.threshold ?? 0) / 1_000_000,
                p99Milliseconds: turns.turns == 0 ? nil : Double(turns.upperBound(quantile: 0.99)) / 1_000_000,
                utilization: min((Double(busy) + Double(turn ?? 0)) / watched, 1),
                busyMilliseconds: (Double(busy) + Double(turn ?? 0)) / 1_000_000,
                watchedMilliseconds: watched / 1_000_000,
                stalls: counts.stallsByLoop[label]?.count ?? 0,
                lastStall: counts.lastStallByLoop[label].map { Timestamp(wallClockNanoseconds: $0) }
            )
        }
        .sorted { $0.label < $1.label }
    }

    /// Waits until every stall that the given loops have had so far is with the sinks; returns `false` at the deadline.
    ///
    /// Blocks the calling thread. It polls, so that neither the loops nor the watchdog pay for a caller that waits.
    package func settle(_ labels: Set<String>, until deadline: UInt64) -> Bool {
        let loops = state.withLock { state in labels.flatMap { state.loops[$0] ?? [] } }
        let called = monotonicNow()
        for loop in loops {
            // A turn that is younger than its threshold would become a stall only after this call.
            while let began = loop.recorder.snapshot().began, began < called, called - began >= loop.threshold {
                guard monotonicNow() < deadline else { return false }
                nap()
            }
        }
        return watchdog.waitForPass(until: deadline) && reporter.settle(until: deadline)
    }

    func writeStatistics() {
        guard let path = configuration.statisticsPath else { return }
        do {
            try AtomicFile.replace(path, with: statistics.jsonData())
        } catch {
            reporter.counts.add { counts in
                counts.failedWrites += 1
                counts.lastWriteError = StallWatchError(.unwritableReports, error)
            }
        }
    }
}

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
