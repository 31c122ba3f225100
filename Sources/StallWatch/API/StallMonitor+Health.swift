import LinuxSupport
public import StallReports

extension StallMonitor {
    /// The longest time that ``health`` waits for the watchdog, in nanoseconds.
    private static let healthAnswerLimit: UInt64 = 100_000_000

    /// Whether the watched loops make progress, as the watchdog finds it now.
    ///
    /// An access wakes the watchdog and waits for it: for less than a millisecond as a rule, for 100 ms at most. If the
    /// watchdog does not answer, the result is the last record, whose time is old. Before ``start()`` and after
    /// ``stop()`` the state is `stopped`. The watched threads pay nothing.
    public var health: HealthRecord {
        guard isRunning else { return healthSource.stoppedRecord() }
        guard let reading = watchdog.readProgress(until: monotonicNow() &+ Self.healthAnswerLimit) else {
            return healthSource.lastRecord()
        }
        return healthSource.record(of: reading)
    }
}

extension HealthOutput {
    /// The settings that the reporter uses.
    var settings: HealthReporter.Settings {
        HealthReporter.Settings(
            path: path, interval: nanoseconds(interval), notifiesServiceManager: notifiesSystemd
        )
    }
}
