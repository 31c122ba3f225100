import StallReports

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

    /// Throws unless each setting is in its range.
    func check() throws(StallWatchError) {
        guard (Self.minimumInterval...Self.maximumInterval).contains(interval) else {
            throw StallWatchError(
                .invalidConfiguration,
                "the interval of the health file is \(interval): give a value from 100 milliseconds to 1 hour"
            )
        }
        guard path != "" else {
            throw StallWatchError(.invalidConfiguration, "the health file's path is empty: name a file")
        }
        guard path != nil || notifiesSystemd else {
            throw StallWatchError(
                .invalidConfiguration,
                "health has neither a path nor notifiesSystemd: set one of them, or set health to nil"
            )
        }
    }
}
