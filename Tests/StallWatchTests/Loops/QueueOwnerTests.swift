import Dispatch
import LinuxSupport
import Testing

@testable import StallWatch

@Suite struct QueueOwnerTests {
    @Test func theThreadThatRunsTheQueueIsItsOwner() {
        let queue = DispatchQueue(label: "owned")
        let owner = QueueOwner(queue)
        #expect(owner.answer() == .unknown)
        queue.sync { owner.check() }
        let isRunning = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        nonisolated(unsafe) var thread: Int32 = 0
        queue.async {
            // "<process>/task/<thread>"
            thread = readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) } ?? 0
            isRunning.signal()
            mayEnd.wait()
        }
        isRunning.wait()
        // Written before the semaphore was signaled.
        #expect(owner.answer() == .thread(thread))
        mayEnd.signal()
    }

    @Test func aQueueThatRunsNothingHasNoOwner() {
        let queue = DispatchQueue(label: "idle")
        let owner = QueueOwner(queue)
        queue.sync { owner.check() }
        queue.sync {}
        #expect(owner.answer() == .noThread)
    }
}
