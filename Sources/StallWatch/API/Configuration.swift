import StallReports
internal import Logging

extension StallMonitor {
    /// The settings of a monitor.
    ///
    /// Every setting has a default, and can also be changed after the configuration is created.
    public struct Configuration: Sendable {
        /// The shortest threshold: 5 ms.
        ///
        /// Below it, reports would show the scheduler's own delays.
        public static let minimumThreshold = Duration.milliseconds(5)
        /// The longest threshold: 24 hours.
        public static let maximumThreshold = Duration.seconds(24 * 60 * 60)

        /// The duration from which a turn is a stall: 5 ms to 24 hours.
        ///
        /// The default is 250 ms, which Apple's Xcode calls a hang. ``StallMonitor/watch(_:threshold:)`` can give a loop
        /// another one.
        public var threshold: Duration
        /// The places that receive the reports: by default the directory `stalls`.
        public var outputs: [ReportOutput]
        /// What is detected and captured.
        public var detection: Detection
        /// How many reports are made of repeated stalls.
        public var repeats: Repeats
        /// What reports tell about the program and its machine.
        public var privacy: Privacy
        /// How functions get their names, and which of them are the app's own.
        public var symbols: Symbols
        /// Called when a stall begins and when it is over, whether or not the stall is reported; `nil` for nothing.
        ///
        /// It runs on a thread that belongs to the monitor.
        public var onEvent: (@Sendable (StallEvent) -> Void)?
        /// The action for a stall that lasts for many times its threshold, or `nil` for none.
        public var escalation: Escalation?
        /// The ways to tell supervisors whether the loops make progress, or `nil` for none.
        public var health: Health?
        /// The access for commands such as `stallwatch stacks` and `tasks`, or `nil` for none, which is the default.
        public var control: Control?

        /// Creates a configuration.
        ///
        /// - Parameters:
        ///   - threshold: The duration from which a turn is a stall: 5 ms to 24 hours.
        ///   - outputs: The places that receive the reports.
        ///   - detection: What is detected and captured.
        ///   - repeats: How many reports are made of repeated stalls.
        ///   - privacy: What reports tell about the program and its machine.
        ///   - symbols: How functions get their names, and which of them are the app's own.
        ///   - onEvent: Called when a stall begins and when it is over.
        ///   - escalation: The action for a stall that lasts for many times its threshold.
        ///   - health: The ways to tell supervisors whether the loops make progress.
        ///   - control: The access for the tool.
        public init(
            threshold: Duration = .milliseconds(250), outputs: [ReportOutput] = [.directory("stalls")],
            detection: Detection = Detection(), repeats: Repeats = Repeats(), privacy: Privacy = Privacy(),
            symbols: Symbols = Symbols(), onEvent: (@Sendable (StallEvent) -> Void)? = nil,
            escalation: Escalation? = nil, health: Health? = nil, control: Control? = nil
        ) {
            self.threshold = threshold
            self.outputs = outputs
            self.detection = detection
            self.repeats = repeats
            self.privacy = privacy
            self.symbols = symbols
            self.onEvent = onEvent
            self.escalation = escalation
            self.health = health
            self.control = control
        }

        func check() throws(StallWatchError) {
            try Self.check(threshold)
            for (name, duration) in [
                ("saturationThreshold", detection.saturationThreshold), ("pinnedThreshold", detection.pinnedThreshold),
                ("limit of modeStarvation", detection.modeStarvation?.limit),
            ] {
                if let duration { try Self.check(duration, name, orNil: true) }
            }
            try escalation?.check()
            try health?.check()
            for output in outputs { try output.check(escalates: escalation != nil) }
            try require(
                (1...10_000).contains(repeats.maximumReportsPerMinute),
                "the limit is \(repeats.maximumReportsPerMinute) reports per minute: give a value from 1 to 10,000")
        }

        static func check(
            _ threshold: Duration, _ name: String = "threshold", orNil: Bool = false
        ) throws(StallWatchError) {
            try require(
                (minimumThreshold...maximumThreshold).contains(threshold),
                "the \(name) is \(threshold): give a value from 5 milliseconds to 24 hours"
                    + (orNil ? ", or nil to turn it off" : ""))
        }

        var logger: Logger? {
            for case .log(let logger) in outputs.map(\.kind) { return logger }
            return nil
        }
    }
}

/// A begin or an end of a stall, for ``StallMonitor/Configuration/onEvent``.
public enum StallEvent: Sendable {
    /// A stall has begun: its report is `ongoing`, unless it has already ended.
    case began(StallReport)
    /// A stall is over, or the monitor no longer follows it.
    case ended(StallReport)
}

func require(_ isValid: Bool, _ message: @autoclosure () -> String) throws(StallWatchError) {
    if !isValid { throw StallWatchError(.invalidConfiguration, message()) }
}
