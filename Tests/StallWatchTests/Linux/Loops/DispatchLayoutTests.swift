import Dispatch
import LinuxSupport
import TestSupport
import Testing

@testable import StallWatch

@Suite struct DispatchManagerTests {
    @Test func `the thread that waits for timers is the manager`() throws {
        let isDone = Semaphore()
        // A timer starts the manager.
        DispatchQueue.global().asyncAfter(deadline: .now() + 0.001) { isDone.post() }
        isDone.wait()
        let manager = DispatchManager()
        let thread = try #require(manager.thread)
        #expect(ThreadIdentity.all().contains(thread))
        #expect(eventually { EpollWait(thread: thread) != nil }, "it waits for events")
        #expect(thread != ownThread())
    }

    @Test func `without the main queue there is no manager`() {
        #expect(DispatchManager(near: nil).thread == nil)
        // Nothing is mapped there.
        #expect(DispatchManager(near: 1 << 20).thread == nil)
    }
}
