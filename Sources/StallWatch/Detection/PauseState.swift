import Synchronization

/// The app's pauses, and the end of the last one.
final class PauseState: Sendable {
    private let depth = Atomic<Int>(0)
    private let resumed = Atomic<UInt64>(0)

    /// Begins a pause, which lasts until the matching ``end(at:)``.
    ///
    /// Pauses nest.
    func begin() {
        depth.wrappingAdd(1, ordering: .sequentiallyConsistent)
    }

    /// Ends a pause: turns are measured from `now` on.
    func end(at now: UInt64) {
        resumed.store(now, ordering: .sequentiallyConsistent)
        depth.wrappingSubtract(1, ordering: .sequentiallyConsistent)
    }

    /// Whether a pause is in progress.
    var isPaused: Bool { depth.load(ordering: .relaxed) > 0 }

    /// Returns when turns begin to count: at the end of the last pause, or at `now` during a pause.
    func countingFrom(at now: UInt64) -> UInt64 {
        depth.load(ordering: .sequentiallyConsistent) > 0 ? now : resumed.load(ordering: .sequentiallyConsistent)
    }
}
