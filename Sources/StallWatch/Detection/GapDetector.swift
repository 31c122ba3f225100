import StallReports

/// Notices that time has passed in which nothing in the process could run.
///
/// A pure value. A thread that sleeps until a deadline and wakes up late was either at work until after it, or waiting for a
/// CPU (so were the loops, and that is worth reporting), or its CPU was with another machine of the host, or nobody was
/// running at all.
struct GapDetector: Equatable {
    /// What a late wake-up means for the turns that last.
    enum Gap: Equatable {
        /// They are measured anew.
        case held(SuppressionReason)
        /// Some were kept from running and some were not: they get a grace period to end before they are judged.
        case stolen
    }

    /// The clocks at one moment, in nanoseconds.
    struct Reading: Equatable {
        var monotonic: UInt64
        /// The monotonic clock plus the time that the machine has been suspended.
        var boot: UInt64
        /// How long the watchdog has been on a CPU, waited for one, or for a thread to be captured, so far.
        var occupied: UInt64
    }

    /// Lateness and suspensions up to this are normal, in nanoseconds: timer slack, a page fault, an interrupt.
    static let tolerance: UInt64 = 50_000_000

    /// How long turns that were kept from running by the host may go on before they are judged, in nanoseconds.
    ///
    /// Healthy ones need a part of their threshold; more would hide stalls on hosts that do this all the time.
    ///
    /// - Parameter threshold: The shortest that a loop has.
    static func gracePeriod(threshold: UInt64) -> UInt64 { min(threshold / 5, tolerance) }

    private var last: Reading?
    /// Whether the last wake-up gave a grace period: there are no two in a row.
    private var hadGracePeriod = false
    private var deadline = UInt64.max

    /// The watchdog goes to sleep until `deadline`, or without one (`.max`).
    ///
    /// - Parameter reading: The clocks when it last woke up. All of its work since then excuses as much lateness, also what
    ///   was done before the deadline: where nothing is captured, some 100 us, and a gap has to be 50 ms.
    mutating func sleep(at reading: Reading, until deadline: UInt64) {
        last = reading
        self.deadline = deadline
    }

    /// The watchdog has woken up.
    ///
    /// - Parameters:
    ///   - reading: The clocks now.
    ///   - firstBegin: When the earliest turn that lasts now began: it ended a sleep without a deadline.
    ///   - stolen: How long the host has kept a CPU from running meanwhile, in nanoseconds, or somewhat more; asked for only
    ///     when the watchdog is late.
    /// - Returns: What the turns that last need, if it is anything.
    mutating func wake(at reading: Reading, firstBegin: UInt64?, stolen: () -> UInt64) -> Gap? {
        guard let last else { return nil }
        let isRested = hadGracePeriod
        hadGracePeriod = false
        self.last = nil
        let suspended = (reading.boot &- reading.monotonic) &- (last.boot &- last.monotonic)
        // Clocks that are read one after the other may differ by a little in either direction.
        if suspended > Self.tolerance, suspended < UInt64.max / 2 { return .held(.suspended) }
        // Without a deadline it was woken by the first turn that began since, if it was that and not something else.
        let due = deadline != .max ? deadline : firstBegin.flatMap { $0 >= last.monotonic ? $0 : nil } ?? .max
        guard due != .max, reading.monotonic > due else { return nil }
        let late = reading.monotonic - due
        let unexplained = late - min(reading.occupied &- last.occupied, late)
        guard unexplained > Self.tolerance else { return nil }
        guard unexplained - min(stolen(), unexplained) <= Self.tolerance else { return .held(.processStopped) }
        hadGracePeriod = !isRested
        return isRested ? nil : .stolen
    }
}
