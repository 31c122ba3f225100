import Synchronization

/// How long a loop has waited for its events, all in all.
///
/// What its thread did between two looks, it did in the time that is left: that tells what an idle loop's late turn cost
/// from what the turns before it did. The loop's thread calls ``begin(at:)`` and ``end(at:)``, which are two loads and
/// stores each; any thread may ask. Times are in nanoseconds of the monotonic clock.
final class WaitClock: Sendable {
    /// The waits that are over.
    private let past = Atomic<UInt64>(0)
    /// When the wait that lasts began; 0 between waits.
    private let began = Atomic<UInt64>(0)

    /// The loop is about to wait.
    func begin(at now: UInt64) {
        began.store(now, ordering: .releasing)
    }

    /// The loop has left its wait.
    ///
    /// Ending a wait that has not been seen to begin does nothing.
    func end(at now: UInt64) {
        let began = began.load(ordering: .relaxed)
        guard began != 0 else { return }
        past.store(past.load(ordering: .relaxed) &+ (now &- began), ordering: .relaxed)
        self.began.store(0, ordering: .releasing)
    }

    /// How long the loop had waited by `time`.
    ///
    /// A wait that ends while this is asked may not be counted: too little is the safe side.
    func total(at time: UInt64) -> UInt64 {
        // In this order: in the other, a wait that ends between the two loads would count twice.
        let past = past.load(ordering: .acquiring)
        let began = began.load(ordering: .acquiring)
        return past &+ (began != 0 && began < time ? time &- began : 0)
    }
}
