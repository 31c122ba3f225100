import LinuxSupport
import StallReports

extension StallMonitor.Configuration {
    /// Converts a threshold's bounds to nanoseconds, or throws if they are out of range.
    static func bounds(_ threshold: StallThreshold) throws(StallWatchError) -> ClosedRange<UInt64> {
        try check(threshold)
        return LinuxSupport.nanoseconds(threshold.floor)...LinuxSupport.nanoseconds(threshold.ceiling)
    }

    /// Converts a duration in the range of thresholds to nanoseconds, or throws if it is out of range.
    static func nanoseconds(_ threshold: Duration) throws(StallWatchError) -> UInt64 {
        try check(threshold)
        return LinuxSupport.nanoseconds(threshold)
    }

    /// Returns the settings that the watchdog uses, or throws if one is out of range.
    func rules() throws(StallWatchError) -> WatchdogOptions {
        var saturation: UInt64?
        if let saturationThreshold { saturation = try Self.nanoseconds(saturationThreshold) }
        return WatchdogOptions(
            capturesAllThreads: captureAllThreads,
            ignoresDebugged: whenDebugged == .ignore,
            saturationThreshold: saturation,
            escalationMultiple: try escalation?.validMultiple()
        )
    }

    /// All sinks: the directory, the log, the hooks and the additional ones.
    var allSinks: [ReportSink] {
        var all: [ReportSink] = []
        if let path = reports.path { all.append(.directory(path, quota: reports.quota)) }
        if let logger { all.append(.log(logger)) }
        var hooks = HookSink.Hooks(began: onStallBegan, ended: onStallEnded)
        if case .call(let body) = escalation?.action { hooks.escalated = body }
        if !hooks.isEmpty { all.append(.hooks(hooks)) }
        return all + sinks
    }
}
