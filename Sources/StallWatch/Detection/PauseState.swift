import Synchronization

/// Whether the app has asked for not being watched, and since when it is watched again.
final class PauseState: Sendable {
    private let depth = Atomic<Int>(0)
    private let resumed = Atomic<UInt64>(0)

    /// Nothing counts until the matching ``end(at:)``.
    ///
    /// Pauses nest.
    func begin() {
        depth.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }

    /// The pause is over: turns are measured from `now` on.
    func end(at now: UInt64) {
        resumed.store(now, ordering: .sequentiallyConsistent)
        depth.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }

    /// From when turns count, seen at `now`: from the end of the last pause, and in one from no time yet.
    func countingFrom(at now: UInt64) -> UInt64 {
        depth.load(ordering: .sequentiallyConsistent) > 0 ? now : resumed.load(ordering: .sequentiallyConsistent)
    }
}
