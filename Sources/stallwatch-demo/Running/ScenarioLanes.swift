import Synchronization

/// The order of a round that runs two scenarios at a time.
///
/// At most one of the two computes for long, because the other one and the watchdogs need the second CPU.
final class ScenarioLanes: Sendable {
    enum Lane: Sendable {
        case computing, blocking
    }

    /// Scenarios that compete for CPUs or for the disk.
    ///
    /// They run one after another, when all others are over.
    static let alone: Set<String> = ["starved", "throttled", "under-load", "fsync", "paging", "cpu-kernel-copy"]

    private struct Rest {
        var computing: ArraySlice<Scenario>
        var blocking: ArraySlice<Scenario>
    }

    private let rest: Mutex<Rest>

    /// The lanes for all of `scenarios` that are not in ``alone``.
    init(_ scenarios: [Scenario]) {
        let shared = scenarios.filter { !Self.alone.contains($0.name) }
        rest = Mutex(Rest(computing: shared.filter(\.computes)[...], blocking: shared.filter { !$0.computes }[...]))
    }

    /// Removes and returns the next scenario of a lane.
    ///
    /// An empty computing lane helps with the blocking scenarios.
    func next(_ lane: Lane) -> Scenario? {
        rest.withLock { rest in
            if lane == .computing, let scenario = rest.computing.popFirst() { return scenario }
            return lane == .computing ? rest.blocking.popLast() : rest.blocking.popFirst()
        }
    }
}

extension Scenario {
    /// Whether the scenario keeps a CPU busy: it computes, the owner of its lock does, or it makes many turns.
    var computes: Bool {
        guard let expected else { return true }
        return expected.cause == "cpu" || expected.ownerDoes == "running" || expected.differingSamples
    }
}
