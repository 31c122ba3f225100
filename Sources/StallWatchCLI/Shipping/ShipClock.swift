import LinuxSupport
import StallReports

/// The time as shipping sees it.
struct ShipClock {
    /// Nanoseconds of the monotonic clock, by which all waits go.
    var now: () -> UInt64
    /// The wall clock, which may jump; read only to understand a date in `Retry-After`.
    var wallTime: () -> Timestamp
    /// Whether a signal has asked to end.
    var isEnding: () -> Bool
    /// Waits until a time of the monotonic clock, or for the signal.
    var wait: (UInt64) -> Void

    /// The system's clocks, and the process's signals.
    init(_ ending: ShipEnding) {
        now = monotonicNow
        wallTime = { Timestamp(wallClockNanoseconds: wallClockNow()) }
        isEnding = { ending.isSet }
        wait = { ending.wait(until: $0) }
    }

    init(
        now: @escaping () -> UInt64, wallTime: @escaping () -> Timestamp, isEnding: @escaping () -> Bool,
        wait: @escaping (UInt64) -> Void
    ) {
        self.now = now
        self.wallTime = wallTime
        self.isEnding = isEnding
        self.wait = wait
    }
}
