import Synchronization

/// The total time that a loop has waited for its events.
///
/// What the thread did between two polls, it did in the remaining time. This separates the cost of an idle loop's late
/// turn from that of the turns before it. Only the loop's thread calls ``begin(at:)`` and ``end(at:)``, which cost two
/// loads and stores each. Any thread may call ``total(at:)``. Times are in monotonic nanoseconds.
final class WaitClock: Sendable {
    /// The total duration of the waits that are over.
    private let past = Atomic<UInt64>(0)
    /// When the current wait began; 0 between waits.
    private let began = Atomic<UInt64>(0)

    /// Notes that the loop is about to wait.
    func begin(at now: UInt64) {
        began.store(now, ordering: .releasing)
    }

    /// Notes that the loop has left its wait.
    ///
    /// Does nothing if no wait has begun.
    func end(at now: UInt64) {
        let began = began.load(ordering: .relaxed)
        guard began != 0 else { return }
        past.store(past.load(ordering: .relaxed) &+ (now &- began), ordering: .relaxed)
        self.began.store(0, ordering: .releasing)
    }

    /// Whether the loop waits now.
    var isWaiting: Bool { began.load(ordering: .acquiring) != 0 }

    /// Returns how long the loop had waited by `time`, in nanoseconds.
    ///
    /// A wait that ends during the call may not be counted. A total that is too small is the safe side.
    func total(at time: UInt64) -> UInt64 {
        // The order of the loads matters: reversed, a wait that ends between them would count twice.
        let past = past.load(ordering: .acquiring)
        let began = began.load(ordering: .acquiring)
        return past &+ (began != 0 && began < time ? time &- began : 0)
    }
}
