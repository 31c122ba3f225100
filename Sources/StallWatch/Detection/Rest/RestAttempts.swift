/// Decides when the watchdog may try again to sleep without a deadline.
///
/// A pure value. An attempt that fails, or a rest that an event ends soon, costs more than a few looks at idle loops. So
/// attempts that do not pay become rare. Times are in nanoseconds.
struct RestAttempts {
    /// The least time between two attempts that do not pay.
    static let leastDelay: UInt64 = 250_000_000
    /// The longest time between two attempts.
    static let longestDelay: UInt64 = 16_000_000_000
    /// The shortest rest that pays.
    static let worthwhileRest: UInt64 = 2_000_000_000

    /// When an attempt may be made, in monotonic nanoseconds.
    private(set) var next: UInt64 = 0
    private var delay = RestAttempts.leastDelay

    /// Notes an attempt after which the watchdog did not rest.
    mutating func noteRefusal(at now: UInt64) {
        next = now &+ delay
        delay = min(delay * 2, Self.longestDelay)
    }

    /// Notes a rest.
    mutating func noteRest(from began: UInt64, to ended: UInt64) {
        if ended &- began >= Self.worthwhileRest {
            delay = Self.leastDelay
            next = ended
        } else {
            noteRefusal(at: ended)
        }
    }
}
