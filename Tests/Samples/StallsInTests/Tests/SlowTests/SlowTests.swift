import Dispatch
import StallWatchTesting
import Testing

/// A test that blocks the main actor for longer than its trait allows, and then ends.
struct SlowTests {
    @Test(.hangDump(after: .seconds(1))) @MainActor func waitsForALongTime() {
        waitForTheServer()
    }
}

private func waitForTheServer() {
    _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 3)  // hangs: slow
}
