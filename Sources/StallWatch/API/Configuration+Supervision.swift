import StallReports

extension StallMonitor.Configuration {
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
            afterThresholds multiple: Int, _ body: @escaping @Sendable (StallReport) -> Void
        ) -> Escalation {
            Escalation(multiple: multiple, action: .call(body))
        }

        /// Returns an escalation that ends the process with abort(3), so that a supervisor restarts it.
        ///
        /// The monitor writes the report first. A disk that does not answer delays the abort by up to 5 seconds, and any
        /// other output by up to 1 second more. The report stays `ongoing` until the next start marks it as `abandoned`.
        ///
        /// - Parameter multiple: The number of thresholds that a stall must last: 2 to 1,000,000.
        ///   ``StallMonitor/init(_:)`` throws for any other number.
        /// - Returns: The escalation.
        public static func abort(afterThresholds multiple: Int) -> Escalation {
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
    /// One monitor of a process at a time can have it: ``StallMonitor/start()`` throws for a second one, which could hide
    /// a stall of the first. The watched threads pay nothing. The watchdog wakes up for each record, also while all loops
    /// wait.
    public struct Health: Sendable, Equatable {
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
        /// A stall is written as soon as it begins. `stallwatch health` calls a record out of date when it is older than
        /// three intervals and two seconds.
        public var interval: Duration
        /// Whether the service manager is notified by the protocol of sd_notify(3), if it has set `NOTIFY_SOCKET`.
        ///
        /// `READY=1` is sent when all loops make progress for the first time. `WATCHDOG=1` follows every half of
        /// `WATCHDOG_USEC`, but only while all loops make progress. `STATUS=` has the sentence of a stall. `STOPPING=1` is
        /// sent when the monitor of the service's main process stops. Set this to `false` in a program that sends these
        /// messages itself.
        public var notifiesSystemd: Bool

        /// Creates a group of settings.
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

    /// The socket through which the tool `stallwatch` reaches a running monitor.
    public struct Control: Sendable, Equatable {
        let directory: String

        /// Returns a Unix socket, named after the process, which answers root and the process's own user.
        ///
        /// A thread of the monitor serves it from ``StallMonitor/start()`` to ``StallMonitor/stop()``, also while every
        /// loop and the task pool are stuck. The monitored threads pay nothing, except while `stacks` captures them.
        ///
        /// A socket that cannot be opened is logged (without a log, on standard error), and the monitor starts without it.
        ///
        /// - Parameter directory: The directory of the socket, created with the monitor if it does not exist, for the
        ///   user that the process has then: one that gives up root before ``StallMonitor/start()`` may open no socket
        ///   in it. It stays the same wherever its path leads later. The path has at most some 70 bytes. Any number of
        ///   processes may share it, also of several containers.
        /// - Returns: The access.
        public static func socket(directory: String) -> Control { Control(directory: directory) }
    }
}
