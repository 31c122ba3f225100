import StackCapture
import StallReports
import LinuxSupport
import Synchronization

#if !os(Linux)
    #error("StallWatch supports Linux on x86-64 and aarch64 only: build it for one of these.")
#endif

/// Watches event loops, and reports each turn of one that takes too long, with the stack of its thread.
///
/// ```swift
/// let monitor = try StallMonitor(.init(threshold: .milliseconds(250), reports: .directory("stalls")))
/// try monitor.watch(.mainRunLoop)
/// try monitor.start()
/// ```
///
/// A monitored thread pays for two observers per turn: a few clock reads and atomic stores, with no lock, no allocation
/// and no system call. Everything else happens on two threads of the monitor's own. A monitor is used once: made,
/// started, stopped. All of its methods may be called on any thread.
public final class StallMonitor: Sendable {
    /// The configuration that the monitor was made with.
    public let configuration: Configuration

    private enum Phase {
        case made
        case running(watchdog: WorkerThread, reporter: WorkerThread)
        case stopped
    }
    private struct State {
        var phase = Phase.made
        var loops: [String: [LoopMonitor]] = [:]
        var identities: [String: ObjectIdentifier] = [:]
        /// Since when each loop has been watched, in monotonic nanoseconds.
        var watchedSince: [String: UInt64] = [:]
        /// When the monitor was started and stopped, in monotonic nanoseconds.
        var started: UInt64?
        var stopped: UInt64?

        /// Stops following all loops; those that are not followed any more stay so.
        func removeSources() {
            for loop in loops.values.joined() { loop.source.remove() }
        }
    }
    private let state = Mutex(State())
    let watchdog: Watchdog
    private let reporter: Reporter

    /// Makes a monitor that watches nothing yet.
    ///
    /// The report directory is made here, and it is tried whether files can be written there.
    ///
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` for a value out of its range, and
    ///   ``StallWatchError/Code/unwritableReports`` when reports cannot be written.
    public init(_ configuration: Configuration = Configuration()) throws(StallWatchError) {
        self.configuration = configuration
        _ = try Configuration.nanoseconds(configuration.threshold)
        let metadata = configuration.metadata
        var settings = Reporter.Settings {
            ReportBuilder(
                process: .current(), metadata: metadata, inApp: configuration.inApp,
                symbolication: .inProcess(configuration.symbolication, inApp: configuration.inApp)
            )
        }
        settings.reportsPerMinute = try configuration.validReportsPerMinute()
        settings.reportsEveryRepeat = configuration.reportsEveryRepeat
        settings.pathStyle = configuration.pathStyle
        settings.redact = configuration.redact
        settings.escalation = configuration.escalation?.action
        let rules = try configuration.rules()
        reporter = try Reporter(settings: settings, sinks: configuration.allSinks.map(\.describe))
        watchdog = Watchdog(rules: rules, submit: reporter.submit)
    }

    deinit {
        stop()
    }

    /// Watches one more loop, from its next turn on.
    ///
    /// May be called before ``start()`` and while the monitor runs.
    ///
    /// - Throws: ``StallWatchError/Code/alreadyWatched`` if this monitor watches the loop, or another one of the same label,
    ///   or if another monitor watches the same ``LoopProbe``; ``StallWatchError/Code/invalidConfiguration`` for a threshold
    ///   out of range; and ``StallWatchError/Code/stopped`` after ``stop()``.
    public func watch(_ loop: WatchedLoop) throws(StallWatchError) {
        let threshold = try Configuration.nanoseconds(loop.threshold ?? configuration.threshold)
        try state.withLock { state throws(StallWatchError) in
            if case .stopped = state.phase {
                throw StallWatchError(.stopped, "the monitor has been stopped: make a new one to watch \(loop.label)")
            }
            guard state.loops[loop.label] == nil else {
                throw StallWatchError(.alreadyWatched, "a loop with the label \(loop.label) is watched already")
            }
            if let identity = loop.identity, let label = state.identities.first(where: { $0.value == identity })?.key {
                throw StallWatchError(.alreadyWatched, "the loop \(loop.label) is watched already, as \(label)")
            }
            let monitors = try loop.makeMonitors(threshold: threshold, alarm: watchdog.alarm)
            state.loops[loop.label] = monitors
            state.identities[loop.label] = loop.identity
            state.watchedSince[loop.label] = monotonicNow()
            watchdog.add(monitors)
        }
    }

    /// Stops watching the loop with that label; a stall that lasts is left as it was last seen.
    ///
    /// Does nothing if there is none.
    public func unwatch(_ label: String) {
        let monitors = state.withLock { state in
            state.identities[label] = nil
            return state.loops.removeValue(forKey: label)
        }
        // The watchdog takes them off when it runs; a monitor that was never started has none.
        for monitor in monitors ?? [] { monitor.source.remove() }
        watchdog.remove(label: label)
    }

    /// Changes how long a turn of the loop with that label may take, from the watchdog's next look on.
    ///
    /// - Throws: ``StallWatchError/Code/invalidConfiguration`` when the threshold is out of range, or no such loop is
    ///   watched.
    public func setThreshold(_ threshold: Duration, of label: String) throws(StallWatchError) {
        let nanoseconds = try Configuration.nanoseconds(threshold)
        guard let monitors = state.withLock({ $0.loops[label] }) else {
            throw StallWatchError(.invalidConfiguration, "no loop with the label \(label) is watched")
        }
        for monitor in monitors { monitor.setThreshold(nanoseconds) }
        watchdog.alarm.ring()
    }

    /// Starts the watchdog.
    ///
    /// - Throws: ``StallWatchError/Code/alreadyStarted`` the second time, ``StallWatchError/Code/stopped`` after
    ///   ``stop()``, and ``StallWatchError/Code/systemFailure`` when there is no memory or no thread to be had.
    public func start() throws(StallWatchError) {
        try state.withLock { state throws(StallWatchError) in
            switch state.phase {
            case .running: throw StallWatchError(.alreadyStarted, "the monitor has been started already")
            case .stopped:
                throw StallWatchError(.stopped, "the monitor has been stopped: make a new one to start again")
            case .made: break
            }
            // Made here, so that what can fail fails in the caller's hands; used by the watchdog alone from then on.
            let capture = try throwing(.systemFailure) { () throws(SystemError) in
                ThreadCapture(engine: try CUnwindEngine())
            }
            let methods = capture.methods.map(\.rawValue)
            let capturer = OneShotTransfer(capture)
            do throws(StallWatchError) {
                try reporter.startSinks()
                let reporterThread = try throwing(.systemFailure) { () throws(SystemError) in
                    try WorkerThread(name: "stallwatch-rep") { [reporter] in reporter.run() }
                }
                do throws(SystemError) {
                    let watchdogThread = try WorkerThread(name: "stallwatch-dog") { [watchdog, reporter] in
                        CUnwindEngine.requestShortSlice()
                        capturer.take().map(watchdog.run)
                        reporter.close()
                    }
                    state.phase = .running(watchdog: watchdogThread, reporter: reporterThread)
                } catch {
                    reporter.close()
                    reporterThread.join()
                    throw StallWatchError(.systemFailure, error)
                }
            } catch {
                reporter.finishSinks()
                state.phase = .stopped
                state.removeSources()
                throw error
            }
            state.started = monotonicNow()
            reporter.logNotice(
                "stall monitor started",
                ["threshold": "\(configuration.threshold)", "captureMethods": methods.joined(separator: ", ")]
            )
        }
    }

    /// Stops watching, takes the observers off the loops and writes what is still to be written.
    ///
    /// Returns when that is done, unless it is called by the monitor's own code, such as a sink; a sink that does not
    /// come back is left alone after 1 second, a disk after 5. A stall that still lasts is reported as `abandoned`.
    /// Calling it again does nothing.
    public func stop() {
        let phase = state.withLock { state in
            defer { state.phase = .stopped }
            if case .running = state.phase { state.stopped = monotonicNow() }
            return state.phase
        }
        switch phase {
        case .stopped:
            return
        case .made:
            reporter.discard()
        case .running(let watchdogThread, let reporterThread):
            // A sink may be what stops the monitor: nobody may wait for it.
            reporter.willStopOnCurrentThread()
            watchdog.stop()
            for thread in [watchdogThread, reporterThread] {
                if thread.isCurrent { thread.detach() } else { thread.join() }
            }
            writeStatistics()
        }
        // The watchdog leaves what it has taken up, which is nothing where it has not run yet.
        state.withLock { $0.removeSources() }
    }

    /// Each stall's report once the stall is over, from now on.
    ///
    /// The sequence ends when the monitor is stopped.
    ///
    /// Every access gives a sequence of its own. A reader that is slower than the stalls misses the oldest:
    /// ``Statistics/reportsDropped`` counts them. Costs a monitored thread nothing.
    public var reports: AsyncStream<StallReport> { reporter.streams.stream() }

    /// What the monitor has done so far, and how the loops are doing.
    ///
    /// Costs a monitored thread nothing.
    public var statistics: Statistics {
        let state = state.withLock { $0 }
        let end = state.stopped ?? monotonicNow()
        let counts = reporter.counts.current
        var statistics = Statistics(counts)
        statistics.suppressed.add(watchdog.suppressed.current)
        statistics.loops = state.loops.map { label, monitors in
            let since = max(state.started ?? end, state.watchedSince[label] ?? end)
            return LoopStatistics(
                label: label, watchedNanoseconds: end &- min(since, end),
                turns: TurnHistogram.Snapshot(sumOf: monitors.map { $0.recorder.histogram.snapshot() }),
                stalls: counts.stallsByLoop[label]
            )
        }
        .sorted { $0.label < $1.label }
        return statistics
    }

    /// The statistics' last state, for whoever keeps them.
    private func writeStatistics() {
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
