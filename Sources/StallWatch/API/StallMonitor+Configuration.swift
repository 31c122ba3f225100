import StallReports
import LinuxSupport
public import Logging

extension StallMonitor {
    /// What a monitor is to do.
    public struct Configuration: Sendable {
        /// The shortest threshold: below it, the scheduler's own delays would be reported.
        public static let minimumThreshold = Duration.milliseconds(5)
        /// The longest threshold.
        public static let maximumThreshold = Duration.seconds(24 * 60 * 60)

        /// How long a turn may take before it is a stall: 5 ms to 24 hours.
        ///
        /// Apple's Xcode calls 250 ms a hang, and so does the default.
        public var threshold: Duration
        /// Where reports go.
        public var reports: ReportDestination
        /// What every report carries along, such as the app's version.
        ///
        /// Do not put secrets here.
        public var metadata: [String: String]
        /// The log for one line a stall, at level info; `nil` for none.
        public var logger: Logger?
        /// Whether a report also has the stacks of the process's other threads, taken one after another right after the
        /// first sample.
        ///
        /// Each running thread is held for some ten microseconds. Off by default; a report of a deadlock has them anyway.
        public var captureAllThreads: Bool
        /// How addresses get their names and lines.
        public var symbolication: Symbolication
        /// What is not the app's own code, besides what systems and toolchains bring along.
        public var inApp: InApp
        /// How long a run loop may go without waiting, though each of its turns is short; `nil` for as long as it
        /// likes.
        public var saturationThreshold: Duration?
        /// What to do while a debugger is attached.
        public var whenDebugged: DebuggerRule

        /// Further places that reports go to.
        public var sinks: [ReportSink]
        /// Reports in any minute at most: 1 to 10,000.
        ///
        /// What is over it is only counted (``Statistics/suppressed``), and so are repeats: of stalls that are the same
        /// (``StallReport/fingerprint``) the 1st, 2nd, 4th, 8th … are reported.
        public var maximumReportsPerMinute = 30
        /// Whether a stall that is the same as earlier ones is always reported, within the limit a minute.
        ///
        /// For tests that stall in the same place again and again and look at each report. Off by default: only the
        /// 1st, 2nd, 4th, 8th … are.
        public var reportsEveryRepeat = false
        /// What is left of paths in reports.
        public var pathStyle = PathStyle.full
        /// Sees each report before any sink or hook does, and may change everything in it but what it is known by:
        /// version, id, kind, state and beginning.
        ///
        /// Runs on the monitor's own thread: while it does, other reports wait.
        public var redact: (@Sendable (inout StallReport) -> Void)?
        /// Called when a stall has been seen, reported or not.
        ///
        /// Runs on a thread of the monitor's own.
        public var onStallBegan: (@Sendable (StallReport) -> Void)?
        /// Called when a stall is over, reported or not.
        ///
        /// Runs on a thread of the monitor's own.
        public var onStallEnded: (@Sendable (StallReport) -> Void)?
        /// What happens when a stall lasts for many times the threshold; `nil` for nothing.
        public var escalation: Escalation?
        /// A file for the statistics as JSON, written when the monitor is stopped; `nil` for none.
        public var statisticsPath: String?

        /// Makes a configuration; every value has a default, and those that are not parameters are set afterwards.
        public init(
            threshold: Duration = .milliseconds(250),
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

        /// A threshold in nanoseconds, if it is in range.
        static func nanoseconds(_ threshold: Duration) throws(StallWatchError) -> UInt64 {
            let value = LinuxSupport.nanoseconds(threshold)
            let range =
                LinuxSupport.nanoseconds(Self.minimumThreshold)...LinuxSupport.nanoseconds(Self.maximumThreshold)
            guard range.contains(value) else {
                throw StallWatchError(
                    .invalidConfiguration,
                    "the threshold is \(threshold): give it a value from 5 milliseconds to 24 hours"
                )
            }
            return value
        }

        private func saturation() throws(StallWatchError) -> UInt64? {
            guard let saturationThreshold else { return nil }
            return try Self.nanoseconds(saturationThreshold)
        }

        /// What the watchdog goes by.
        func rules() throws(StallWatchError) -> WatchdogOptions {
            WatchdogOptions(
                capturesAllThreads: captureAllThreads,
                ignoresDebugged: whenDebugged == .ignore,
                saturationThreshold: try saturation(),
                escalationMultiple: try escalation?.validMultiple()
            )
        }
    }

    /// What to do about a stall while a debugger is attached to the loop's thread.
    public enum DebuggerRule: Sendable {
        /// Nothing: somebody is looking already.
        case ignore
        /// The same as without.
        case report
    }

    /// Where a monitor's reports go.
    public struct ReportDestination: Sendable, Equatable {
        let path: String?
        let quota: ReportQuota

        /// One JSON file a stall in the directory at `path`, which is made if it is missing.
        ///
        /// - Parameters:
        ///   - path: The directory. Processes may share it.
        ///   - quota: How much it may hold; past it, the oldest reports are removed.
        /// - Returns: The destination.
        public static func directory(_ path: String, quota: ReportQuota = ReportQuota()) -> ReportDestination {
            ReportDestination(path: path, quota: quota)
        }

        /// Nowhere: reports go to the other sinks only.
        public static let none = ReportDestination(path: nil, quota: ReportQuota())
    }
}

extension StallMonitor.Configuration {
    /// Every sink: the directory, the log, the hooks and those that were added.
    var allSinks: [ReportSink] {
        var all: [ReportSink] = []
        if let path = reports.path { all.append(.directory(path, quota: reports.quota)) }
        if let logger { all.append(.log(logger)) }
        var hooks = HookSink.Hooks(began: onStallBegan, ended: onStallEnded)
        if case .call(let body) = escalation?.action { hooks.escalated = body }
        if !hooks.isEmpty { all.append(.hooks(hooks)) }
        return all + sinks
    }

    /// The limit of reports per minute, if it is in range.
    func validReportsPerMinute() throws(StallWatchError) -> Int {
        guard (1...10_000).contains(maximumReportsPerMinute) else {
            throw StallWatchError(
                .invalidConfiguration,
                "the limit is \(maximumReportsPerMinute) reports a minute: give it a value from 1 to 10,000"
            )
        }
        return maximumReportsPerMinute
    }
}
