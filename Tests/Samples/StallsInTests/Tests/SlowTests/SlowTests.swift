import Dispatch
import StallWatchTesting
import Testing

/// Tests that take longer than their traits allow, and then end: one blocks the main actor, and one awaits.
struct SlowTests {
    @Test(.hangDump(after: .seconds(1))) @MainActor func waitsForALongTime() {
        waitForTheServer()
    }

    @Test(.hangDump(after: .seconds(1))) func awaitsForALongTime() async {
        await Task { await awaitTheServer() }.value
    }
}

private func awaitTheServer() async {
    await withUnsafeContinuation { (answer: UnsafeContinuation<Void, Never>) in  // hangs: awaits
        DispatchQueue.global().asyncAfter(deadline: .now() + 3) { answer.resume() }
    }
}

private func waitForTheServer() {
    _ = DispatchSemaphore(value: 0).wait(timeout: .now() + 3)  // hangs: slow
}
