import CDemo
import Dispatch
import Foundation
import Synchronization

/// Threads that perform all kinds of actions until `stop`.
final class Chaos: Sendable {
    private let makers: [ChaosKind: ChaosMaker]

    /// Starts a thread for each of `kinds`.
    init(_ kinds: [ChaosKind], seed: UInt64) {
        makers = Dictionary(
            uniqueKeysWithValues: kinds.enumerated().map { index, kind in
                (kind, ChaosMaker(kind.rawValue, pause: kind.pause, seed: seed &+ UInt64(index), kind.act))
            }
        )
    }

    /// Pauses exactly these kinds.
    ///
    /// Returns once none of their actions is in progress.
    func leaveOut(_ kinds: Set<ChaosKind>) {
        for (kind, maker) in makers { maker.leaveOut(kinds.contains(kind)) }
    }

    /// Ends and joins all threads, and returns their counts.
    func stop() -> [ChaosKind: ChaosCount] { makers.mapValues { $0.stop() } }
}

extension Scenario {
    /// The kinds of chaos that pause while the scenario runs, because they would change its right result.
    var leftOut: Set<ChaosKind> {
        if Self.shortOfCPU.contains(name) { return Set(ChaosKind.allCases) }
        return Self.endingByTheWallClock.contains(name) ? [.clock] : []
    }

    /// Scenarios that wait until a moment of the wall clock.
    ///
    /// A moment chosen while the clock is two seconds slow is past when the clock is right again.
    static let endingByTheWallClock: Set<String> = [
        "timer", "source0", "perform-block", "semaphore", "deadlock-main-queue", "deadlock-self",
    ]

    /// Scenarios with 5 ms of CPU time in 100.
    ///
    /// Page copies after a fork(2), and waits for another thread's lock, would be a large part of that.
    static let shortOfCPU: Set<String> = ["throttled"]
}
