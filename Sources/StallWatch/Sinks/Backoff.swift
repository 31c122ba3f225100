/// When to try again after failures: after 1 second, then 2, 4, 8 … and from there on every 5 minutes.
///
/// A pure value: it is told the time.
struct Backoff {
    static let first: UInt64 = 1_000_000_000
    static let longest: UInt64 = 300_000_000_000

    /// When the next attempt may be made, in monotonic nanoseconds; `nil` while nothing has failed.
    private(set) var nextAttempt: UInt64?
    private var delay = first

    /// Whether an attempt may be made at `now`.
    func mayTry(at now: UInt64) -> Bool { nextAttempt.map { now >= $0 } ?? true }

    mutating func failed(at now: UInt64) {
        nextAttempt = now &+ delay
        delay = min(delay * 2, Self.longest)
    }

    mutating func succeeded() {
        self = Backoff()
    }
}
