/// The duration from which a turn is a stall.
///
/// ```swift
/// try monitor.watch(.queue(storage, label: "storage", threshold: .milliseconds(100)))
/// ```
public struct StallThreshold: Sendable, Equatable {
    /// The duration: 5 ms to 24 hours.
    public let ceiling: Duration

    /// Returns a threshold of a duration.
    ///
    /// - Parameter duration: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func fixed(_ duration: Duration) -> StallThreshold { StallThreshold(ceiling: duration) }

    /// Returns a threshold of a number of milliseconds.
    ///
    /// - Parameter milliseconds: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func milliseconds(_ milliseconds: Int) -> StallThreshold { .fixed(.milliseconds(milliseconds)) }

    /// Returns a threshold of a number of seconds.
    ///
    /// - Parameter seconds: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func seconds(_ seconds: Int) -> StallThreshold { .fixed(.seconds(seconds)) }

    /// Returns a threshold of a number of seconds.
    ///
    /// - Parameter seconds: The duration: 5 ms to 24 hours.
    /// - Returns: The threshold.
    public static func seconds(_ seconds: Double) -> StallThreshold { .fixed(.seconds(seconds)) }
}

extension StallThreshold: CustomStringConvertible {
    /// The duration.
    public var description: String { "\(ceiling)" }
}
