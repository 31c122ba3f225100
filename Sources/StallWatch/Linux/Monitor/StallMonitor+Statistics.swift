import Glibc
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
        var statistics = reporter.counts.current
        let stalls = reporter.counts.byLoop
        statistics.suppressed.add(watchdog.suppressed.current)
        statistics.unwatchedOperations = operations.registry.unwatched
        statistics.loops = state.loops.map { label, monitors in
            let since = max(state.started ?? end, state.watchedSince[label] ?? end)
            return LoopStatistics(
                label: label, watchedNanoseconds: end &- min(since, end), loops: monitors,
                stalls: stalls[label]
            )
        }
        .sorted { $0.label < $1.label }
        return statistics
    }

    /// Returns the state of every loop, sorted by label; that costs the monitored threads nothing.
    func loopStates(at now: UInt64) -> [ControlAnswer.LoopState] {
        let state = state.withLock { $0 }
        let stalls = reporter.counts.byLoop
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
                stalls: stalls[label]?.count ?? 0,
                lastStall: stalls[label].map { Timestamp(wallClockNanoseconds: $0.last) }
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
            while let began = loop.recorder.snapshot().began, began < called, called - began >= loop.threshold,
                !loop.source.isWaitingUnobserved()
            {
                guard monotonicNow() < deadline else { return false }
                nap()
            }
        }
        return watchdog.waitForPass(until: deadline) && reporter.settle(until: deadline)
    }

    func writeStatistics() {
        guard let path = configuration.statisticsPath else { return }
        let bytes = statistics.jsonData()
        // Not on the caller's thread, which a limit on file sizes would end (SIGXFSZ).
        let outcome = WorkerThread.value(until: monotonicNow() &+ SinkSet.storeTimeLimit) {
            Result { () throws(SystemError) in try AtomicFile.replace(path, with: bytes) }
        }
        do throws(SystemError) {
            guard let outcome else { throw SystemError("\(path) could not be written in time") }
            try outcome.get()
        } catch {
            reporter.counts.add(StallWatchError(.unwritableReports, error))
        }
    }
}

extension StallMonitor.LoopStatistics {
    init(label: String, watchedNanoseconds: UInt64, loops: [LoopMonitor], stalls: ReportCounts.StallTotals?) {
        let all = loops.map { (loop: $0, turns: $0.recorder.histogram.snapshot()) }
        let sum = LoopInterval(label: label, nanoseconds: max(watchedNanoseconds, 1), all)
        let turns = TurnHistogram.Snapshot(sumOf: all.map(\.turns))
        let watched = seconds(watchedNanoseconds)
        let hours = watched / 3_600
        let stalled = seconds(stalls?.nanoseconds ?? 0)
        let count = stalls?.count ?? 0
        let latency = turns.counts.enumerated().filter { $0.element > 0 }.map { bucket, turns in
            let bound = TurnHistogram.upperBound(of: bucket)
            return StallMonitor.LatencyBucket(belowMicroseconds: bound.map { Double($0) / 1_000 }, turns: turns)
        }
        self.init(
            label: label, watchedSeconds: watched, turns: turns.turns,
            busySeconds: seconds(turns.busyNanoseconds), stalls: count, stallSeconds: stalled,
            stallsPerHour: hours > 0 ? Double(count) / hours : 0,
            stallSecondsPerHour: hours > 0 ? stalled / hours : 0, earlyStops: loops.reduce(0) { $0 + $1.earlyStops },
            thresholdMilliseconds: sum.threshold * 1_000,
            utilization: sum.utilization, meanMilliseconds: sum.delay.map { $0.mean * 1_000 },
            p50Milliseconds: sum.delay.map { $0.p50 * 1_000 }, p90Milliseconds: sum.delay.map { $0.p90 * 1_000 },
            p99Milliseconds: sum.delay.map { $0.p99 * 1_000 },
            longestMilliseconds: sum.delay.map { $0.longest * 1_000 },
            latency: latency)
    }
}
