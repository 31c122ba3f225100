import Notes
import StallWatchTesting
import Synchronization
import Testing

/// Tests that run at the same time; nothing shows to which of the first two the stall belongs, so neither fails: the
/// run does.
@Suite struct ParallelTests {
    @Test(.noStalls(over: .milliseconds(100))) func startsATask() async throws {
        try await meet(1)
        await withCheckedContinuation { end in NoteStore.retryLater { end.resume() } }
        for time in 2...3 { try await meet(time) }
    }

    @Test(.noStalls(over: .milliseconds(100))) func doesNothing() async throws {
        for time in 1...3 { try await meet(time) }
    }

    /// Its stalls are its own, and are not charged to the others.
    @Test func hasNoTrait() async throws {
        for time in 1...2 { try await meet(time) }
        await NoteStore().search()
        try await meet(3)
    }
}

private let arrivals = Atomic<Int>(0)

/// Waits until all three tests have come here so often.
private func meet(_ times: Int) async throws {
    arrivals.add(1, ordering: .relaxed)
    while arrivals.load(ordering: .relaxed) < 3 * times { try await Task.sleep(for: .milliseconds(20)) }
}
