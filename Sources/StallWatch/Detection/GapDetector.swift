/// Notices that time has passed in which nothing in the process could run.
///
/// A pure value. A thread that sleeps until a deadline and wakes up late was either at work until after it, or waiting for a
/// CPU (so were the loops, and that is worth reporting), or nobody was running at all.
struct GapDetector: Equatable {
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

    private var last: Reading?
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
    /// Returns why the loops' turns have to be measured anew, if they have.
    ///
    /// - Parameter firstBegin: When the earliest turn that lasts now began: it ended a sleep without a deadline.
    mutating func wake(at reading: Reading, firstBegin: UInt64?) -> HeldBackReason? {
        guard let last else { return nil }
        self.last = nil
        let suspended = (reading.boot &- reading.monotonic) &- (last.boot &- last.monotonic)
        // Clocks that are read one after the other may differ by a little in either direction.
        if suspended > Self.tolerance, suspended < UInt64.max / 2 { return .suspended }
        // Without a deadline it was woken by the first turn that began since, if it was that and not something else.
        let due = deadline != .max ? deadline : firstBegin.flatMap { $0 >= last.monotonic ? $0 : nil } ?? .max
        guard due != .max, reading.monotonic > due else { return nil }
        let late = reading.monotonic - due
        let occupied = reading.occupied &- last.occupied
        return late > Self.tolerance && late - min(occupied, late) > Self.tolerance ? .processStopped : nil
    }
}
