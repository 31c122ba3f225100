public import Logging
public import StallReports

extension StallMonitor {
    /// The settings for looking up function names and source lines.
    public typealias Symbolication = SymbolicationSettings
    /// The rules that decide which code belongs to the app.
    public typealias InApp = InAppSettings

    /// The settings of a monitor.
    public struct Configuration: Sendable {
        /// The shortest threshold: 5 ms.
        ///
        /// Below it, reports would show the scheduler's own delays.
        public static let minimumThreshold = Duration.milliseconds(5)
        /// The longest threshold: 24 hours.
        public static let maximumThreshold = Duration.seconds(24 * 60 * 60)

        /// The duration from which a turn is a stall: 5 ms to 24 hours.
        ///
        /// The default is 250 ms, which Apple's Xcode calls a hang.
        public var threshold: StallThreshold
        /// The directory that receives the reports.
        public var reports: ReportDestination
        /// Values that every report includes, such as the app's version.
        ///
        /// Put no secrets here: reports contain the values as they are.
        public var metadata: [String: String]
        /// The log that receives one line per stall, at level warning or error; `nil` for none.
        public var logger: Logger?
        /// Whether each report includes the stacks of the process's other threads.
        ///
        /// They are captured one after another, right after the first sample. Capturing holds each running thread for
        /// some ten microseconds. The default is `false`. A report of a deadlock includes these stacks in any case.
        public var captureAllThreads: Bool
        /// The settings for looking up function names and source lines.
        public var symbolication: Symbolication
        /// The code that does not belong to the app, in addition to the system's and the toolchain's.
        public var inApp: InApp
        /// The time for which a run loop may be busy, although each of its turns is short: 5 ms to 24 hours.
        ///
        /// A loop that was busy for 98 % of it is reported as saturated. The default is 10 seconds. `nil` turns this off,
        /// and reports of spinning loops, too, which need 3 seconds whatever this value is.
        public var saturationThreshold: Duration?
        /// The treatment of stalls while a debugger is attached.
        public var whenDebugged: DebuggerRule
        /// When a run loop's default mode starves while the loop runs in another mode, or `nil` for never.
        public var modeStarvation: ModeStarvationRule? = ModeStarvationRule()

        /// Additional sinks for the reports.
        public var sinks: [ReportSink]
        /// The largest number of reports in any minute: 1 to 10,000.
        ///
        /// Reports over this limit are counted in ``Statistics/suppressed``, not written. Repeated stalls, which have
        /// the same ``StallReport/fingerprint``, are reported at occurrence 1, 2, 4, 8, … and when one is four times as long
        /// as those reported; the others are counted, too.
        public var maximumReportsPerMinute = 30
        /// Whether every occurrence of a repeated stall is reported, within the limit per minute.
        ///
        /// Use it in tests that stall in the same place many times and inspect each report. The default is `false`:
        /// only occurrences 1, 2, 4, 8, …, and those four times as long as the reported ones, are reported.
        public var reportsEveryRepeat = false
        /// The form in which reports contain file paths.
        public var pathStyle = PathStyle.full
        /// Edits each report before any sink or hook receives it.
        ///
        /// It may change everything except the report's version, id, kind, state and start time. It runs on the
        /// monitor's own thread and delays other reports until it returns. The sentence ``StallReport/Cause/summary``
        /// names functions and files: after functions, stacks or the culprit have changed, it is written anew from what
        /// is left, unless the closure has changed the sentence itself.
        public var redact: (@Sendable (inout StallReport) -> Void)?
        /// Called when a stall begins, whether or not the stall is reported.
        ///
        /// It runs on a thread that belongs to the monitor.
        public var onStallBegan: (@Sendable (StallReport) -> Void)?
        /// Called when a stall is over, whether or not the stall is reported.
        ///
        /// It runs on a thread that belongs to the monitor.
        public var onStallEnded: (@Sendable (StallReport) -> Void)?
        /// The action for a stall that lasts for many times its threshold, or `nil` for none.
        public var escalation: Escalation?
        /// The path of a JSON file that receives the statistics when the monitor stops, or `nil` for none.
        public var statisticsPath: String?
        /// The access for `stallwatch ps`, `state`, `watch` and `stacks`, or `nil` for none, which is the default.
        public var control: ControlAccess?

        /// The ways to tell supervisors whether the loops make progress, or `nil` for none.
        public var health: HealthOutput?
        /// The path of a file that receives the sentence of a stall that escalates, or `nil` for none.
        ///
        /// Kubernetes shows `/dev/termination-log` as the message of a container that has ended. The file is written
        /// before the ``escalation`` acts, which may wait for it for up to 1 second. The text replaces the file's
        /// contents and has at most 4,096 bytes. ``StallMonitor/init(_:)`` throws if there is no escalation.
        public var terminationLog: String?

        /// Creates a configuration.
        ///
        /// Every setting has a default. Settings without a parameter here can be changed afterwards.
        public init(
            threshold: StallThreshold = .milliseconds(250),
            reports: ReportDestination = .directory("stalls"),
            sinks: [ReportSink] = [],
            metadata: [String: String] = [:],
            logger: Logger? = nil,
            captureAllThreads: Bool = false,
            symbolication: Symbolication = .lines,
            inApp: InApp = InApp(),
            saturationThreshold: Duration? = .seconds(10),
            whenDebugged: DebuggerRule = .ignore
        ) {
            self.threshold = threshold
            self.reports = reports
            self.sinks = sinks
            self.metadata = metadata
            self.logger = logger
            self.captureAllThreads = captureAllThreads
            self.symbolication = symbolication
            self.inApp = inApp
            self.saturationThreshold = saturationThreshold
            self.whenDebugged = whenDebugged
        }

        func check() throws(StallWatchError) {
            try Self.check(threshold)
            if let saturationThreshold { try Self.check(saturationThreshold) }
            if let modeStarvation { try Self.check(modeStarvation.limit) }
            try escalation?.check()
            try health?.check()
            try require(terminationLog != "", "the termination log's path is empty: name a file")
            try require(
                terminationLog == nil || escalation != nil,
                "a termination log is only written when a stall escalates: set escalation, too")
            try require(
                (1...10_000).contains(maximumReportsPerMinute),
                "the limit is \(maximumReportsPerMinute) reports per minute: give a value from 1 to 10,000")
        }

        static func check(_ threshold: StallThreshold) throws(StallWatchError) {
            try check(threshold.ceiling)
        }

        static func check(_ threshold: Duration) throws(StallWatchError) {
            try require(
                (minimumThreshold...maximumThreshold).contains(threshold),
                "the threshold is \(threshold): give a value from 5 milliseconds to 24 hours")
        }
    }

    /// The treatment of a stall while a debugger is attached to the loop's thread.
    public enum DebuggerRule: Sendable {
        /// Counts the turn in ``Statistics/suppressed`` and does not report it.
        case ignore
        /// Reports the stall as usual.
        case report
    }

    /// The rule for a run loop that runs in another mode while work waits for its default mode.
    ///
    /// It applies to loops whose default mode is watched and has run. A loop in its default mode pays nothing. While the
    /// loop is in another mode, a short-lived thread of the monitor takes the run loop's lock for some microseconds, five
    /// times a second at most, to read its mode and its next timer.
    public struct ModeStarvationRule: Sendable, Equatable {
        /// The time for which a timer of the default mode is late, or the main queue has work: 5 ms to 24 hours.
        public var limit: Duration
        /// The names of modes that keep the default mode waiting on purpose, such as that of a dialog.
        public var modalModes: Set<String>

        /// Creates a rule, whose limit is one second by default.
        public init(limit: Duration = .seconds(1), modalModes: Set<String> = []) {
            self.limit = limit
            self.modalModes = modalModes
        }
    }

    /// The access that the tool `stallwatch` has to a running monitor.
    public struct ControlAccess: Sendable, Equatable {
        let directory: String

        /// Returns a Unix socket, named after the process, which answers root and the process's own user.
        ///
        /// A thread of the monitor serves it from ``StallMonitor/start()`` to ``StallMonitor/stop()``, also while every
        /// loop and the task pool are stuck. The monitored threads pay nothing, except while `stacks` captures them.
        ///
        /// - Parameter directory: The directory of the socket, created if it does not exist. Its path has at most some
        ///   80 bytes. One monitor of a process at a time may have a socket in it.
        /// - Returns: The access.
        public static func socket(directory: String) -> ControlAccess { ControlAccess(directory: directory) }
    }

    /// The place where a monitor stores its reports.
    public struct ReportDestination: Sendable, Equatable {
        let path: String?
        let quota: ReportQuota

        /// Returns a directory that receives one JSON file per stall.
        ///
        /// If the directory cannot be created or written to, ``StallMonitor/init(_:)`` throws.
        ///
        /// - Parameters:
        ///   - path: The directory. It is created if it does not exist. Several processes may share it.
        ///   - quota: The directory's limits, at least 1 report and 1 MiB. Beyond them the oldest reports are removed,
        ///     but never those of ongoing stalls.
        /// - Returns: The destination.
        public static func directory(_ path: String, quota: ReportQuota = ReportQuota()) -> ReportDestination {
            ReportDestination(path: path, quota: quota)
        }

        /// No directory: reports go to ``Configuration/sinks`` only.
        public static let none = ReportDestination(path: nil, quota: ReportQuota())
    }
}

/// The action that a monitor takes when a stall lasts for many times its threshold.
public struct Escalation: Sendable {
    /// The number of thresholds after which the action runs: 2 to 1,000,000.
    let multiple: Int
    let action: EscalationAction

    /// Returns an escalation that calls `body` with the report once a stall has lasted for `multiple` thresholds.
    ///
    /// `body` runs on a thread that belongs to the monitor.
    ///
    /// - Parameters:
    ///   - multiple: The number of thresholds: 2 to 1,000,000. ``StallMonitor/init(_:)`` throws for any other number.
    ///   - body: Receives the report of the stall, which is still `ongoing`.
    /// - Returns: The escalation.
    public static func call(
        after multiple: Int, _ body: @escaping @Sendable (StallReport) -> Void
    ) -> Escalation {
        Escalation(multiple: multiple, action: .call(body))
    }

    /// Returns an escalation that ends the process with abort(3), so that a supervisor restarts it.
    ///
    /// The monitor writes the report first. A disk that does not answer delays the abort by up to 5 seconds, and any
    /// other sink by up to 1 second more. The report stays `ongoing` until the next start marks it as `abandoned`.
    ///
    /// - Parameter multiple: The number of thresholds that a stall must last: 2 to 1,000,000. ``StallMonitor/init(_:)``
    ///   throws for any other number.
    /// - Returns: The escalation.
    public static func abort(after multiple: Int) -> Escalation {
        Escalation(multiple: multiple, action: .abort)
    }

    func check() throws(StallWatchError) {
        try require(
            (2...1_000_000).contains(multiple),
            "the escalation is set to \(multiple) thresholds: give a number from 2 to 1,000,000")
    }
}

/// The ways in which a monitor tells supervisors whether the watched loops make progress.
///
/// Set it in ``StallMonitor/Configuration/health``. One monitor of a process at a time can have it:
/// ``StallMonitor/start()`` throws for a second one, which could hide a stall of the first. The watched threads pay
/// nothing. The watchdog wakes up for each record, also while all loops wait.
public struct HealthOutput: Sendable, Equatable {
    /// The shortest interval: 100 ms.
    public static let minimumInterval = Duration.milliseconds(100)
    /// The longest interval: 1 hour.
    public static let maximumInterval = Duration.seconds(60 * 60)

    /// The path of the health file, or `nil` for none.
    ///
    /// Its directory must exist. Use a file system in memory, such as `/run`: the file is replaced once per ``interval``.
    /// It is a ``HealthRecord`` as JSON. Its modification time is the time at which all loops last made progress. Only
    /// the program's user may read it.
    public var path: String?
    /// The time between two records in the health file: 100 ms to 1 hour.
    ///
    /// A stall is written as soon as it begins. A reader takes a record for out of date after three intervals and two
    /// seconds.
    public var interval: Duration
    /// Whether the service manager is notified by the protocol of sd_notify(3), if it has set `NOTIFY_SOCKET`.
    ///
    /// `READY=1` is sent when all loops make progress for the first time. `WATCHDOG=1` follows every half of
    /// `WATCHDOG_USEC`, but only while all loops make progress. `STATUS=` has the sentence of a stall. `STOPPING=1` is
    /// sent when the monitor stops. Set this to `false` in a program that sends these messages itself.
    public var notifiesSystemd: Bool

    /// Creates an output.
    ///
    /// - Parameters:
    ///   - path: The path of the health file, or `nil` for none.
    ///   - interval: The time between two records in the health file: 100 ms to 1 hour.
    ///   - notifiesSystemd: Whether the service manager is notified, if it has set `NOTIFY_SOCKET`.
    public init(path: String? = nil, interval: Duration = .seconds(1), notifiesSystemd: Bool = true) {
        self.path = path
        self.interval = interval
        self.notifiesSystemd = notifiesSystemd
    }

    func check() throws(StallWatchError) {
        try require(
            (Self.minimumInterval...Self.maximumInterval).contains(interval),
            "the interval of the health file is \(interval): give a value from 100 milliseconds to 1 hour")
        try require(path != "", "the health file's path is empty: name a file")
        try require(
            path != nil || notifiesSystemd,
            "health has neither a path nor notifiesSystemd: set one of them, or set health to nil")
    }
}

/// Throws for an invalid setting.
func require(_ isValid: Bool, _ message: @autoclosure () -> String) throws(StallWatchError) {
    if !isValid { throw StallWatchError(.invalidConfiguration, message()) }
}
