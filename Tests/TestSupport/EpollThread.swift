import CUnwindTestSupport
import Glibc
package import LinuxSupport
import Synchronization

/// A thread that waits for events without an end, and takes each event at once, as the thread of an event loop.
package final class EpollThread: Sendable {
    package let thread: Int32
    /// The epoll set.
    package let descriptor: Int32
    private let event: Int32
    private let isStopping: Flag
    private let worker: WorkerThread

    private final class Flag: Sendable {
        let value = Atomic<Bool>(false)
        let thread = Atomic<Int32>(0)
        let isKnown = Semaphore()
    }

    /// - Throws: ``SystemError`` if the system refuses the thread.
    package init() throws(SystemError) {
        var event: Int32 = -1
        let descriptor = cunwind_test_epoll(&event)
        let flag = Flag()
        worker = try WorkerThread(name: "test-epoll") { [event] in
            flag.thread.store(ownThread() ?? 0, ordering: .releasing)
            flag.isKnown.post()
            while !flag.value.load(ordering: .acquiring) { cunwind_test_take_event(descriptor, event) }
        }
        flag.isKnown.wait()
        thread = flag.thread.load(ordering: .acquiring)
        self.descriptor = descriptor
        self.event = event
        isStopping = flag
    }

    /// Returns where the thread waits, once it does; `nil` if it does not within some seconds.
    package func place() -> EpollWait? {
        var place: EpollWait?
        _ = eventually {
            place = EpollWait(thread: thread)
            return place != nil
        }
        return place
    }

    /// Sends an event.
    package func send() {
        var one: UInt64 = 1
        _ = write(event, &one, 8)
    }

    /// Ends the thread; call it once.
    package func stop() {
        isStopping.value.store(true, ordering: .releasing)
        send()
        worker.join()
        close(event)
        close(descriptor)
    }
}
