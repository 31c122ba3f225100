/// The delays between attempts after failures: 1, 2, 4, 8, … seconds, up to 5 minutes.
///
/// A pure value: the caller supplies the time.
struct Backoff {
    static let first: UInt64 = 1_000_000_000
    static let longest: UInt64 = 300_000_000_000

    /// The earliest time of the next attempt, in monotonic nanoseconds; `nil` after a success or before any failure.
    private(set) var nextAttempt: UInt64?
    private var delay = first

    /// Returns whether an attempt is allowed at `now`.
    func mayTry(at now: UInt64) -> Bool { nextAttempt.map { now >= $0 } ?? true }

    mutating func failed(at now: UInt64) {
        nextAttempt = now &+ delay
        delay = min(delay * 2, Self.longest)
    }

    mutating func succeeded() {
        self = Backoff()
    }
}
