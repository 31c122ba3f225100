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
        /// Each running thread is held for some ten microseconds. Off by default.
        public var captureAllThreads: Bool
        /// How addresses get their names and lines.
        public var symbolication: Symbolication
        /// What is not the app's own code, besides what systems and toolchains bring along.
        public var inApp: InApp
        /// How long a run loop may go without waiting, though each of its turns is short; `nil` for as long as it likes.
        public var saturationThreshold: Duration?
        /// What to do while a debugger is attached.
        public var whenDebugged: DebuggerRule

        /// Makes a configuration; every value has a default.
        public init(
            threshold: Duration = .milliseconds(250),
            reports: ReportDestination = .directory("stalls"),
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
            guard threshold >= Self.minimumThreshold, threshold <= Self.maximumThreshold else {
                throw StallWatchError(
                    .invalidConfiguration,
                    "the threshold is \(threshold): give it a value from 5 milliseconds to 24 hours"
                )
            }
            let (seconds, attoseconds) = threshold.components
            return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
        }

        private func saturation() throws(StallWatchError) -> UInt64? {
            guard let saturationThreshold else { return nil }
            return try Self.nanoseconds(saturationThreshold)
        }

        /// What the watchdog goes by.
        func rules() throws(StallWatchError) -> WatchRules {
            WatchRules(
                capturesAllThreads: captureAllThreads,
                ignoresDebugged: whenDebugged == .ignore,
                saturationThreshold: try saturation()
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

        /// One JSON file a stall in the directory at `path`, which is made if it is missing.
        public static func directory(_ path: String) -> ReportDestination { ReportDestination(path: path) }

        /// Nowhere: reports come through ``StallMonitor/reports`` and the log only.
        public static let none = ReportDestination(path: nil)
    }

    /// What a monitor has done so far.
    public struct Statistics: Sendable, Equatable {
        /// Stalls that are over and have been reported.
        public internal(set) var stalls = 0
        /// Reports that a slow reader of ``StallMonitor/reports`` has missed.
        public internal(set) var reportsDropped = 0
        /// Stalls that were not reported because too many were waiting to be.
        public internal(set) var reportsLost = 0
        /// How often something over a threshold was not reported, by reason.
        public internal(set) var heldBack = HeldBackCounts()
        /// Attempts to write a report that failed.
        public internal(set) var failedWrites = 0
        /// Why the last one of them failed.
        public internal(set) var lastWriteError: StallWatchError?
    }
}
