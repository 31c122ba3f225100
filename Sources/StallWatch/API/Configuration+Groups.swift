import StallReports

extension StallMonitor.Configuration {
    /// What a monitor detects and captures.
    public struct Detection: Sendable {
        /// The time for which a run loop may be busy, although each of its turns is short: 5 ms to 24 hours.
        ///
        /// A loop that was busy for 98 % of it is reported as saturated. The default is 10 seconds. `nil` turns this off,
        /// and reports of spinning loops, too, which need 3 seconds whatever this value is.
        public var saturationThreshold: Duration?
        /// When a run loop's default mode starves while the loop runs in another mode, or `nil` for never.
        ///
        /// `nil` also turns off reports of loops with due timers that no thread runs. Such a loop is asked once a second.
        public var modeStarvation: ModeStarvation?
        /// The time for which one task may keep a thread of the task pool: 5 ms to 24 hours, or `nil` for any time.
        ///
        /// Such a thread is *pinned*: the task blocks on it, or computes without a pause while other tasks wait. The default
        /// is one second. The pool is watched with ``WatchedLoop/main`` and ``WatchedLoop/cooperativePool(label:)``, and task
        /// executors with ``WatchedLoop/executor(_:label:)``. The watchdog only reads, once a second while threads run
        /// tasks, and once in ten seconds while none does. With `nil` it does not wake up for this at all.
        public var pinnedThreshold: Duration?
        /// Whether the task pool is watched with the main loop, too.
        package var watchesPoolWithMain = true
        /// The treatment of stalls while a debugger is attached.
        public var whenDebugged: DebuggerRule
        /// Whether each report includes the stacks of the process's other threads.
        ///
        /// They are captured one after another, right after the first sample. Capturing holds each running thread for
        /// some ten microseconds. The default is `false`. A report of a deadlock includes these stacks in any case.
        public var capturesAllThreads: Bool
        /// Whether the log says right after the start if the monitor works: see ``StallMonitor/prove()``.
        ///
        /// Without a log, standard error does. Health records have the result, too. The default is `false`.
        public var provesAtStart: Bool

        /// Creates a group of settings.
        ///
        /// - Parameters:
        ///   - saturationThreshold: The time for which a run loop may be busy; `nil` to report no saturation.
        ///   - modeStarvation: When a run loop's default mode starves; `nil` for never.
        ///   - pinnedThreshold: The time for which one task may keep a thread of the task pool; `nil` for any time.
        ///   - whenDebugged: The treatment of stalls while a debugger is attached.
        ///   - capturesAllThreads: Whether each report includes the stacks of the process's other threads.
        ///   - provesAtStart: Whether the log says right after the start if the monitor works.
        public init(
            saturationThreshold: Duration? = .seconds(10), modeStarvation: ModeStarvation? = ModeStarvation(),
            pinnedThreshold: Duration? = .seconds(1), whenDebugged: DebuggerRule = .ignore,
            capturesAllThreads: Bool = false, provesAtStart: Bool = false
        ) {
            self.saturationThreshold = saturationThreshold
            self.modeStarvation = modeStarvation
            self.pinnedThreshold = pinnedThreshold
            self.whenDebugged = whenDebugged
            self.capturesAllThreads = capturesAllThreads
            self.provesAtStart = provesAtStart
        }
    }

    /// The rule for a run loop that runs in another mode while work waits for its default mode.
    ///
    /// It applies to loops whose default mode is watched and has run. A loop in its default mode pays nothing. While the
    /// loop is in another mode, a short-lived thread of the monitor takes the run loop's lock for some microseconds, five
    /// times a second at most, to read its mode and its next timer.
    public struct ModeStarvation: Sendable, Equatable {
        /// The time for which a timer of the default mode is late, or the main queue has work: 5 ms to 24 hours.
        public var limit: Duration
        /// The names of modes that keep the default mode waiting on purpose, such as that of a dialog.
        public var modalModes: Set<String>

        /// Creates a rule, whose limit is one second by default.
        ///
        /// - Parameters:
        ///   - limit: The time for which the default mode may wait: 5 ms to 24 hours.
        ///   - modalModes: The names of modes that keep it waiting on purpose.
        public init(limit: Duration = .seconds(1), modalModes: Set<String> = []) {
            self.limit = limit
            self.modalModes = modalModes
        }
    }

    /// The treatment of a stall while a debugger is attached to the loop's thread.
    public enum DebuggerRule: Sendable {
        /// Counts the turn in ``MonitorStatistics/suppressed`` and does not report it.
        case ignore
        /// Reports the stall as usual.
        case report
    }

    /// How many reports a monitor makes of repeated stalls.
    public struct Repeats: Sendable {
        /// The largest number of reports in any minute: 1 to 10,000.
        ///
        /// Reports over this limit are counted in ``MonitorStatistics/suppressed``, not written. Repeated stalls, which have
        /// the same ``StallReport/fingerprint``, are reported at occurrence 1, 2, 4, 8, … and when one is four times as long
        /// as those reported; the others are counted, too.
        public var maximumReportsPerMinute: Int
        /// Whether every occurrence of a repeated stall is reported, within the limit per minute.
        ///
        /// Use it in tests that stall in the same place many times and inspect each report. The default is `false`:
        /// only occurrences 1, 2, 4, 8, …, and those four times as long as the reported ones, are reported.
        public var reportsEveryRepeat: Bool

        /// Creates a group of settings.
        ///
        /// - Parameters:
        ///   - maximumReportsPerMinute: The largest number of reports in any minute: 1 to 10,000.
        ///   - reportsEveryRepeat: Whether every occurrence of a repeated stall is reported.
        public init(maximumReportsPerMinute: Int = 30, reportsEveryRepeat: Bool = false) {
            self.maximumReportsPerMinute = maximumReportsPerMinute
            self.reportsEveryRepeat = reportsEveryRepeat
        }
    }

    /// What reports tell about the program and its machine.
    public struct Privacy: Sendable {
        /// The form in which reports contain file paths.
        public var pathStyle: PathStyle
        /// Values that every report includes, such as the app's version.
        ///
        /// Put no secrets here: reports contain the values as they are.
        public var metadata: [String: String]
        /// Edits each report before any output or hook receives it.
        ///
        /// It may change everything except the report's version, id, kind, state and start time. It runs on a thread of
        /// the monitor. A report for which it takes more than 0.8 seconds keeps only its times, and so do those that come
        /// until it has returned. The sentence ``StallReport/Cause/summary`` names functions, files and locks: it is written
        /// anew from what is left, unless the closure has changed the sentence itself.
        ///
        /// ```swift
        /// configuration.privacy.redact = { report in
        ///     report.process.hostname = ""
        ///     report.replaceTargets { $0.hasPrefix("/home/") ? "/home/…" : $0 }
        ///     report.replaceLockLabels { _ in nil }
        /// }
        /// ```
        public var redact: (@Sendable (inout StallReport) -> Void)?

        /// Creates a group of settings.
        ///
        /// - Parameters:
        ///   - pathStyle: The form in which reports contain file paths.
        ///   - metadata: Values that every report includes.
        ///   - redact: Edits each report before any output or hook receives it.
        public init(
            pathStyle: PathStyle = .full, metadata: [String: String] = [:],
            redact: (@Sendable (inout StallReport) -> Void)? = nil
        ) {
            self.pathStyle = pathStyle
            self.metadata = metadata
            self.redact = redact
        }
    }

    /// How functions get their names, and which of them are the app's own.
    public struct Symbols: Sendable {
        /// The settings for looking up function names and source lines.
        public var lookup: SymbolicationSettings
        /// The code that does not belong to the app, in addition to the system's and the toolchain's.
        public var inApp: InAppSettings

        /// Creates a group of settings.
        ///
        /// - Parameters:
        ///   - lookup: The settings for looking up function names and source lines.
        ///   - inApp: The code that does not belong to the app.
        public init(lookup: SymbolicationSettings = .lines, inApp: InAppSettings = InAppSettings()) {
            self.lookup = lookup
            self.inApp = inApp
        }
    }
}
