/// The time for which a profile may keep a thread from running.
///
/// At most ``start`` and one part in ``share`` of the time so far, and the length of one stop.
struct StopAllowance {
    /// The part of the time: 0.5 %, that is 100 us for each of 50 samples a second.
    ///
    /// A stop takes 6 to 40 us (measured), and longer where the helper has to wait for a CPU.
    static let share: UInt64 = 200
    /// The allowance at the begin, in nanoseconds: the first stops of a thread are slower.
    static let start: UInt64 = 1_000_000

    /// The time for which the thread was kept from running so far, in nanoseconds.
    private(set) var held: UInt64 = 0

    /// Counts a stop.
    mutating func add(_ nanoseconds: UInt64) { held &+= nanoseconds }

    /// Returns whether the thread may be stopped again.
    ///
    /// - Parameter elapsed: The time since the profile began, in nanoseconds.
    /// - Returns: Whether it may.
    func mayStop(after elapsed: UInt64) -> Bool { held < Self.start + elapsed / Self.share }
}
