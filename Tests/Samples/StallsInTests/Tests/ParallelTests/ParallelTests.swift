import Notes
import StallWatchTesting
import Testing

/// Tests that run at the same time; nothing shows to which of the first two the stall belongs, so neither fails: the
/// run does.
@Suite struct ParallelTests {
    @Test(.noStalls(over: .milliseconds(100))) func startsATask() async throws {
        NoteStore.retryLater()
        try await Task.sleep(for: .milliseconds(800))
    }

    @Test(.noStalls(over: .milliseconds(100))) func doesNothing() async throws {
        try await Task.sleep(for: .milliseconds(800))
    }

    /// Its stalls are its own, and are not charged to the others.
    @Test func hasNoTrait() async throws {
        try await Task.sleep(for: .milliseconds(550))
        await NoteStore().search()
    }
}
