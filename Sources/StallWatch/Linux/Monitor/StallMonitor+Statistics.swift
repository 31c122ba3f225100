import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

extension StallMonitor {
    /// A sequence of the reports of all stalls that end from now on.
    ///
    /// Every access creates a sequence of its own, which ends when the monitor stops. A sequence buffers 64 reports. If
    /// its reader is slower, the oldest are dropped and counted in ``MonitorStatistics/reportsDropped``. Reading costs the
    /// monitored threads nothing.
    public var reports: AsyncStream<StallReport> { reporter.streams.stream() }

    /// The counts of the monitor's work so far, and the numbers of its loops.
    ///
    /// Reading them costs the monitored threads nothing.
    public var statistics: MonitorStatistics {
        var statistics = reporter.counts.current
        statistics.suppressed.add(watchdog.suppressed.current)
        statistics.unwatchedOperations = operations.registry.unwatched
        statistics.loops = loopStatistics
        return statistics
    }

    /// The numbers of every loop, sorted by label.
    var loopStatistics: [LoopStatistics] {
        let state = state.withLock { $0 }
        let now = state.stopped ?? monotonicNow()
        let stalls = reporter.counts.byLoop
        return state.loops.map { label, monitors in
            let since = max(state.started ?? now, state.watchedSince[label] ?? now)
            var loop = LoopStatistics(
                label: label, nanoseconds: now &- min(since, now),
                monitors.map { ($0, $0.recorder.histogram.snapshot()) }, at: state.stopped == nil ? now : nil)
            loop.earlyStops = monitors.reduce(0) { $0 + $1.earlyStops }
            if let total = stalls[label] {
                loop.stalls = total.count
                loop.stallTime = .nanoseconds(total.nanoseconds)
                loop.lastStall = Timestamp(wallClockNanoseconds: total.last)
            }
            return loop
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
