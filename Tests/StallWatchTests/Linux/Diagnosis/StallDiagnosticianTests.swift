import Glibc
import LinuxSupport
import StackCapture
import Synchronization
import TestSupport
import Testing

@testable import StallWatch

@Suite struct StallDiagnosticianTests {
    /// A capturer whose stacks are not read.
    private final class NoStacks: StackCapturing {
        let methods = [CapturedStack.Method.read]

        func capture(thread: Int32, mayStop: Bool) throws(CaptureFailure) -> CapturedStack { .stub([0x1000]) }

        func images() -> ImageList { ImageList() }
    }

    /// A thread that waits for a mutex which the test holds.
    private final class Waiter: @unchecked Sendable {
        /// Initialized before the thread starts, and destroyed after it has ended.
        let mutex: UnsafeMutablePointer<pthread_mutex_t>
        let id = Atomic<Int32>(0)

        init() {
            mutex = .allocate(capacity: 1)
            pthread_mutex_init(mutex, nil)
        }

        deinit {
            pthread_mutex_destroy(mutex)
            mutex.deallocate()
        }
    }

    /// A loop without early checks has one reading from before its threshold, which has no stack.
    @Test func aWaitThatWasReadBeforeItsFirstSampleKeepsItsLock() throws {
        let waiter = Waiter()
        pthread_mutex_lock(waiter.mutex)
        let thread = try WorkerThread(name: "waiter") {
            waiter.id.store(ownThread() ?? -1, ordering: .releasing)
            pthread_mutex_lock(waiter.mutex)
            pthread_mutex_unlock(waiter.mutex)
        }
        defer {
            pthread_mutex_unlock(waiter.mutex)
            thread.join()
        }
        try #require(eventually { waiter.id.load(ordering: .acquiring) != 0 })
        let id = waiter.id.load(ordering: .acquiring)
        let files = try #require(ThreadProc(thread: id))
        try #require(eventually { files.read()?.activity.call?.name == "futex" })
        let threads = ProcessThreads(capturer: NoStacks())
        var diagnostician = StallDiagnostician(threads: threads, waits: WaitClock())
        let start = monotonicNow()
        // The reading before the turn, and the one within it.
        diagnostician.inspect(id, turn: start - 1, threshold: 1, now: start)
        diagnostician.inspect(id, turn: start, threshold: 1, now: start + 1)
        let sampled = diagnostician.sample(
            id, stack: .stub([0x1000]), start: start, isFirst: true, turnEnd: { nil })
        let cause = try #require(sampled)
        #expect(cause.kind == .lock)
        #expect(cause.observation?.lock?.lock.address == UInt64(UInt(bitPattern: waiter.mutex)), "\(cause)")
    }
}
