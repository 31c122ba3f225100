/// The growing wait between tries.
struct Backoff: Sendable, Equatable {
    /// The first wait, before its random part.
    static let first = Duration.milliseconds(500)
    /// The longest wait that grows by itself.
    static let longest = Duration.seconds(60)

    /// Failed tries in a row.
    private(set) var failures = 0

    /// Counts one more failed try.
    ///
    /// Half of it is random, so that senders which failed together do not all try again together. A wait that the collector
    /// asks for is never cut short; a tenth of it at most is added.
    ///
    /// - Parameters:
    ///   - random: From 0 to 1.
    ///   - asked: The wait that the collector asks for.
    /// - Returns: The wait until the next try.
    mutating func next(random: Double, asked: Duration? = nil) -> Duration {
        failures += 1
        // 2^7 × 0.5 s is over the longest.
        let full = min(Self.first * (1 << min(failures - 1, 7)), Self.longest)
        let own = full / 2 + full / 2 * random
        return max(own, asked.map { $0 + $0 / 10 * random } ?? .zero)
    }

    mutating func reset() { failures = 0 }
}
