import Foundation
import Testing

/// Tests that never end by themselves; each one runs alone, and is ended from outside.
struct HangingTests {
    @Test func deadlock() throws {
        let first = NSLock(), second = NSLock()
        let mayGoOn = DispatchSemaphore(value: 0)
        first.lock()
        Thread.detachNewThread {
            second.lock()
            mayGoOn.signal()
            lockInOtherOrder(first)
        }
        mayGoOn.wait()
        lockInOrder(second)
    }

    @Test func continuation() async {
        let answer: Int = await withUnsafeContinuation { _ in }  // hangs: continuation
        #expect(answer == 0)
    }

    @Test func child() throws {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sleep")
        process.arguments = ["612"]
        try process.run()
        waitForChild(process)
    }
}

private func lockInOrder(_ lock: NSLock) {
    lock.lock()  // hangs: deadlock
}

private func lockInOtherOrder(_ lock: NSLock) {
    lock.lock()  // hangs: other
}

private func waitForChild(_ process: Process) {
    process.waitUntilExit()  // hangs: child
}
