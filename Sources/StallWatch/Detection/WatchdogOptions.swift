/// The settings of a configuration that the watchdog uses.
struct WatchdogOptions: Sendable, Equatable {
    var capturesAllThreads = false
    var ignoresDebugged = true
    var saturationThreshold: UInt64?
    /// The number of thresholds after which a stall escalates; `nil` for never.
    var escalationMultiple: Int?
}
