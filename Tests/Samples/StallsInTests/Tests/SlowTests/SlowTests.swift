import Dispatch
import Foundation
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
    _ = await withUnsafeContinuation { (answer: UnsafeContinuation<Int32, Never>) in  // hangs: awaits
        DispatchQueue.global().async { answer.resume(returning: system(server)) }
    }
}

private func waitForTheServer() {
    _ = system(server)  // hangs: slow
}

/// Takes three seconds, and until the tests are dumped: the threads that do it have ended then.
private let server = "sleep 3; while grep -qs stallwatch-hang /proc/$PPID/task/*/comm; do sleep 0.1; done"
