import Glibc
import LinuxSupport
import StackCapture
import StallReports
import Synchronization

extension LiveEngine {
    func makeReports() -> AsyncStream<StallReport> { reporter.streams.stream() }

    var statistics: MonitorStatistics {
        var statistics = reporter.counts.current
        statistics.suppressed.add(watchdog.suppressed.current)
        statistics.unwatchedOperations = operations.registry.unwatched
        statistics.loops = loopStatistics
        return statistics
    }

    /// The numbers of every loop, sorted by label.
    var loopStatistics: [LoopStatistics] {
        let (state, stalls) = (state.withLock { $0 }, reporter.counts.byLoop)
        return state.loops.values.map { statistics(of: $0, state, stalls) }.sorted { $0.label < $1.label }
    }

    func statistics(of entry: LoopEntry) -> LoopStatistics {
        statistics(of: entry, state.withLock { $0 }, reporter.counts.byLoop)
    }

    private func statistics(
        of entry: LoopEntry, _ state: State, _ stalls: [String: ReportCounts.StallTotals]
    ) -> LoopStatistics {
        let end = entry.ended ?? state.stopped
        let now = end ?? monotonicNow()
        let since = max(state.started ?? now, entry.since)
        var loop = LoopStatistics(
            label: entry.label, nanoseconds: now &- min(since, now),
            entry.monitors.map { ($0, BusyTurns(of: $0, at: end == nil ? now : nil)) })
        loop.earlyStops = entry.monitors.reduce(0) { $0 + $1.earlyStops }
        loop.lateTimers = entry.monitors.reduce(0) { $0 + $1.timerDelays.count }
        if loop.lateTimers > 0, let delay = entry.monitors.map(\.timerDelays.longest).max() {
            loop.longestTimerDelay = .nanoseconds(delay)
        }
        if let total = entry.stalls(in: stalls) {
            loop.stalls = total.count
            loop.missed = total.missed
            loop.stallTime = .nanoseconds(total.nanoseconds)
            loop.lastStall = Timestamp(wallClockNanoseconds: total.last)
        }
        return loop
    }

    /// What the monitors of the process have cost it so far.
    var cost: MonitorCost {
        let (use, holds) = (WorkerThread.use, CUnwindEngine.holds)
        var cost = MonitorCost()
        cost.seconds = Double(monotonicNow() &- use.since) / 1e9
        (cost.cpuSeconds, cost.processCPUSeconds) = (Double(use.nanoseconds) / 1e9, Double(processTimeNow()) / 1e9)
        (cost.threads, cost.wakeUps) = (WorkerThread.ids.count, Int(clamping: use.waits))
        let files = (directoryEntries("/proc/self/fd") ?? []).compactMap { readLink("/proc/self/fd/\($0.name)") }
        // As a rule no other code opens these.
        cost.openFiles = files.count { $0.hasPrefix("/proc/") && $0.contains("/task/") }
        cost.holds = holds.count
        cost.heldMicroseconds = Double(holds.sum) / 1_000
        cost.longestHoldMicroseconds = Double(holds.longest) / 1_000
        return cost
    }

    /// Blocks the calling thread, and polls, so that neither the loops nor the watchdog pay for a caller that waits.
    func settle(_ labels: Set<String>, until deadline: UInt64) -> Bool {
        let loops = state.withLock { state in labels.flatMap { state.loops[$0]?.monitors ?? [] } }
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

    func unrunTimers(of labels: Set<String>, until deadline: UInt64) -> [String: UInt64] {
        let loops = state.withLock { state in labels.flatMap { state.loops[$0]?.monitors ?? [] } }
        var delays: [String: UInt64] = [:]
        for loop in loops {
            // Not on the caller's thread: it waits for the loop's locks.
            guard let source = loop.source as? RunLoopSource, !source.isWaitingUnobserved(),
                let answer = WorkerThread.value(until: deadline, of: { source.makeModeReader().read() }),
                let since = NotRunDetector.dueSince(answer, loop.recorder.load(at: monotonicNow()))
            else { continue }
            delays[loop.label] = answer.time &- since
        }
        return delays
    }

    /// Removes what killed processes have left beside the files of the statistics.
    func removeLeftoversOfStatistics() {
        guard !statisticsFiles.isEmpty else { return }
        // Not on the caller's thread: the file system may hang. Without a thread a later start removes them.
        _ = try? WorkerThread(name: "stallwatch-try") { [statisticsFiles] in
            for file in statisticsFiles { file.directory.removeLeftovers(of: [file.name]) }
        }
    }

    /// Writes the files of the statistics, until a deadline in monotonic nanoseconds.
    func writeStatistics(until deadline: UInt64) {
        for file in statisticsFiles {
            let bytes = statistics.jsonData()
            // Not on the caller's thread, which a limit on file sizes would end (SIGXFSZ).
            let outcome = WorkerThread.value(until: deadline) {
                Result { () throws(SystemError) in try AtomicFile.replace(file.name, in: file.directory, with: bytes) }
            }
            do throws(SystemError) {
                guard let outcome else { throw SystemError("\(file.path) could not be written in time") }
                try outcome.get()
            } catch {
                reporter.counts.add(StallWatchError(.unwritableReports, error))
            }
        }
    }
}

extension StallMonitor {
    /// Returns for how long a timer is due of each of these run loops that no thread runs, in nanoseconds; asks until a deadline,
    /// in monotonic nanoseconds.
    package func unrunTimers(of labels: Set<String>, until deadline: UInt64) -> [String: UInt64] {
        (engine as? LiveEngine)?.unrunTimers(of: labels, until: deadline) ?? [:]
    }
}
