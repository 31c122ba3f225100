import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct WorkerThreadTests {
    @Test func `a crash handler can stop the thread, and the app's signals stay away from it`() throws {
        let blocked = try #require(try ProbedThread.run(isWaiting: true) { blockedSignals(of: "self/task/\($0)") })
        let own = try #require(blockedSignals(of: "thread-self"))
        let ofCrashes: Set<Int32> = [SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGPROF, SIGSEGV, SIGSYS, SIGTRAP]
        #expect(blocked.intersection(ofCrashes) == own.intersection(ofCrashes))
        #expect(blocked.isSuperset(of: [SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD, SIGPIPE, SIGALRM, SIGQUIT]))
    }

    @Test func `a monitor's thread is known by its id while it runs`() throws {
        let id = Atomic<Int32>(0)
        let gate = Semaphore()
        let worker = try WorkerThread(name: "any name") {
            id.store(ownThread() ?? 0, ordering: .releasing)
            gate.wait()
        }
        #expect(eventually { WorkerThread.ids.contains(id.load(ordering: .acquiring)) })
        gate.post()
        worker.join()
        #expect(!WorkerThread.ids.contains(id.load(ordering: .acquiring)))
        let own = try #require(ownThread())
        #expect(!WorkerThread.ids.contains(own))
        #expect(WorkerThread.asOwnThread { WorkerThread.ids.contains(own) })
        #expect(!WorkerThread.ids.contains(own))
    }

    /// Profilers send SIGPROF to any thread that uses a CPU.
    @Test func `a signal does not end a wait`() throws {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in }
        var previous = sigaction()
        sigaction(SIGPROF, &action, &previous)
        defer { sigaction(SIGPROF, &previous, nil) }
        let semaphore = Semaphore()
        let waited = Mutex<(wasPosted: Bool, nanoseconds: UInt64)?>(nil)
        let thread = Atomic<UInt>(0)
        let worker = try WorkerThread(name: "test-wait") {
            thread.store(UInt(pthread_self()), ordering: .releasing)
            let start = monotonicNow()
            let wasPosted = semaphore.wait(until: start + 100_000_000)
            waited.withLock { $0 = (wasPosted, monotonicNow() - start) }
        }
        while thread.load(ordering: .acquiring) == 0 { sched_yield() }
        for _ in 0..<20 where waited.withLock({ $0 == nil }) {
            // The thread exists: it is joined below.
            pthread_kill(pthread_t(thread.load(ordering: .acquiring)), SIGPROF)
            usleep(2_000)
        }
        worker.join()
        let result = try #require(waited.withLock { $0 })
        #expect(!result.wasPosted)
        #expect(result.nanoseconds >= 100_000_000)
    }
}

/// Returns the signals that the thread with this directory in /proc blocks (proc_pid_status(5)).
func blockedSignals(of thread: String) -> Set<Int32>? {
    var status = readSmallFile("/proc/\(thread)/status").map(ByteCursor.init)
    guard status?.skip(pastLinePrefix: "SigBlk:") == true, let word = status?.word(), let mask = UInt64(word, radix: 16)
    else { return nil }
    return Set((1...64).filter { mask >> UInt64($0 - 1) & 1 == 1 })
}
