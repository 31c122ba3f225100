import CUnwindTestSupport
import Foundation
import Glibc
package import LinuxSupport
package import StackCapture
import Synchronization

/// A thread that waits for events without an end, and takes each event at once, as the thread of an event loop.
package final class EpollThread: Sendable {
    package let thread: Int32
    package let descriptor: Int32
    private let event: Int32
    private let isStopping: Flag
    private let worker: WorkerThread

    private final class Flag: Sendable {
        let value = Atomic<Bool>(false)
        let thread = Atomic<Int32>(0)
        let isKnown = Semaphore()
    }

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
            place = try? ThreadProbe(thread: thread, files: .syscall).epollWait()
            return place != nil
        }
        return place
    }

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

/// Returns the calling thread's kernel id, from a link such as "4700/task/4711" (proc(5)).
package func ownThread() -> Int32? {
    readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) }
}

/// How long a test waits for another thread or program, in nanoseconds.
///
/// It ends a hang and judges nothing: beside a thousand other tests a thread may get no CPU for a minute.
/// `STALLWATCH_TEST_PATIENCE` is another number of seconds, for tests that are known to fail.
package let patience: UInt64 = {
    let seconds = ProcessInfo.processInfo.environment["STALLWATCH_TEST_PATIENCE"].flatMap(UInt64.init)
    return (seconds ?? 300) * 1_000_000_000
}()

/// The end of a wait that begins now, in monotonic nanoseconds.
package var endOfPatience: UInt64 { monotonicNow() &+ patience }

/// Waits for another thread to make a condition true, checking every 5 ms, or less often where a check starts a program;
/// returns whether it did.
package func eventually(every milliseconds: UInt32 = 5, _ condition: () -> Bool) -> Bool {
    let end = endOfPatience
    while monotonicNow() < end {
        if condition() { return true }
        usleep(milliseconds * 1_000)
    }
    return condition()
}

/// The values that closures receive on other threads.
package final class Collected<Value: Sendable>: Sendable {
    private let values = Mutex<[Value]>([])
    package init() {}
    package var all: [Value] { values.withLock { $0 } }
    package func add(_ value: Value) { values.withLock { $0.append(value) } }
}

/// Runs a task and its children on the calling thread.
package final class TaskOnThread: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Runs `body` in a new task and returns the task's id, as its job describes it.
    @discardableResult
    package static func run(name: String? = nil, _ body: @escaping @Sendable () async -> Void) -> UInt64? {
        let executor = TaskOnThread()
        Task(name: name, executorPreference: executor) { await body() }
        var id: UInt64?
        while let job = executor.jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            if id == nil { id = UInt64(job.description.filter(\.isNumber)) }
            job.runSynchronously(on: executor.asUnownedTaskExecutor())
        }
        return id
    }
}
