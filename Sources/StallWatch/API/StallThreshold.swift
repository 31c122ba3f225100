/// The duration from which a turn is a stall: a fixed one, or one that the monitor learns for each loop.
///
/// ```swift
/// try monitor.watch(.queue(storage, label: "storage", threshold: .milliseconds(100)))
/// try monitor.setThreshold(.adaptive(floor: .milliseconds(50), ceiling: .milliseconds(500)), of: "storage")
/// ```
///
/// An adaptive threshold is four times the duration that at most one in 1,000 turns of the loop exceeds (*p99.9*), and
/// never outside its bounds. The monitor closes a window of turns after a minute, or later if the loop has had fewer than
/// 1,000 turns. Of the last fifteen windows, the second largest p99.9 counts: a window with stalls does not raise the
/// threshold, and two such windows do. Until fifteen windows are closed, the threshold is the ceiling. Learning costs the
/// loop nothing, and never wakes the watchdog.
public struct StallThreshold: Sendable, Equatable {
    /// The shortest value: 5 ms to 24 hours.
    public let floor: Duration
    /// The longest value: ``floor`` to 24 hours.
    ///
    /// A fixed threshold has the same value as ``floor``.
    public let ceiling: Duration

    /// Whether the monitor learns the value.
    public var isAdaptive: Bool { floor != ceiling }

    /// Returns a threshold that does not change.
    ///
    /// - Parameter duration: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func fixed(_ duration: Duration) -> StallThreshold {
        StallThreshold(floor: duration, ceiling: duration)
    }

    /// Returns a threshold that does not change.
    ///
    /// - Parameter milliseconds: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func milliseconds(_ milliseconds: Int) -> StallThreshold { .fixed(.milliseconds(milliseconds)) }

    /// Returns a threshold that does not change.
    ///
    /// - Parameter seconds: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func seconds(_ seconds: Int) -> StallThreshold { .fixed(.seconds(seconds)) }

    /// Returns a threshold that does not change.
    ///
    /// - Parameter seconds: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func seconds(_ seconds: Double) -> StallThreshold { .fixed(.seconds(seconds)) }

    /// Returns a threshold that follows the loop's own turns.
    ///
    /// - Parameters:
    ///   - floor: The shortest value: 5 ms to 24 hours.
    ///   - ceiling: The longest value, `floor` to 24 hours, and the value until enough turns are seen.
    /// - Returns: The threshold.
    public static func adaptive(floor: Duration, ceiling: Duration) -> StallThreshold {
        StallThreshold(floor: floor, ceiling: ceiling)
    }
}

extension StallThreshold: CustomStringConvertible {
    /// The duration, or the word `adaptive` and the bounds.
    public var description: String {
        isAdaptive ? "adaptive, \(floor) to \(ceiling)" : "\(ceiling)"
    }
}
