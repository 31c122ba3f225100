import Glibc
import Synchronization
import Testing

@testable import LinuxSupport

/// Of two threads that each store one thing and then load the other's, one at least sees what the other has stored.
@Suite(.serialized) struct AsymmetricFenceTests {
    /// With the watchdog's own fence alone, some fifty go wrong.
    private static let rounds = 10_000

    @Test(arguments: [false, true])
    func oneOfTheTwoSeesTheOther(isPrepared: Bool) throws {
        let litmus = Litmus(rounds: Self.rounds)
        if isPrepared { litmus.fence.prepare() }
        let loop = try WorkerThread(name: "test-loop") {
            litmus.run { round in
                litmus.delay(round % 32)
                litmus.began.store(round, ordering: .releasing)
                litmus.fence.light()
                litmus.loopSaw.store(litmus.parked.load(ordering: .relaxed), ordering: .relaxed)
            }
        }
        litmus.run { round in
            litmus.delay(round / 32 % 32)
            litmus.parked.store(round, ordering: .releasing)
            litmus.fence.heavy()
            litmus.watchdogSaw.store(litmus.began.load(ordering: .relaxed), ordering: .relaxed)
        }
        loop.join()
        #expect(litmus.misses.load(ordering: .relaxed) == 0)
    }
}

/// Two threads that do their part of each round at the same moment.
private final class Litmus: Sendable {
    let fence = AsymmetricFence()
    let began = Atomic<Int>(0)
    let parked = Atomic<Int>(0)
    let loopSaw = Atomic<Int>(0)
    let watchdogSaw = Atomic<Int>(0)
    /// Rounds in which neither saw the other.
    let misses = Atomic<Int>(0)
    private let rounds: Int
    private let arrivals = Atomic<Int>(0)

    init(rounds: Int) {
        self.rounds = rounds
    }

    func run(_ part: (_ round: Int) -> Void) {
        for round in 1...rounds {
            meet(4 * round - 2)
            part(round)
            meet(4 * round)
            // Both threads look, so that neither goes on before the other has looked; one miss counts as two.
            if loopSaw.load(ordering: .relaxed) < round, watchdogSaw.load(ordering: .relaxed) < round {
                misses.wrappingAdd(1, ordering: .relaxed)
            }
        }
    }

    /// The parts of a round overlap by another amount each time.
    func delay(_ loads: Int) {
        for _ in 0..<loads { _ = arrivals.load(ordering: .relaxed) }
    }

    /// Waits, on CPU, until both threads have come here.
    private func meet(_ count: Int) {
        arrivals.wrappingAdd(1, ordering: .sequentiallyConsistent)
        var looks = 0
        while arrivals.load(ordering: .sequentiallyConsistent) < count {
            looks += 1
            // The other one may wait for this very CPU.
            if looks % 2000 == 0 { sched_yield() }
        }
    }
}
