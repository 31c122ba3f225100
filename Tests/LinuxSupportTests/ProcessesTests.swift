import CLinux
import CUnwindTestSupport
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport

/// `nonisolated(unsafe)`: each process of the test has one thread that uses it.
nonisolated(unsafe) private var numberOfParent: UInt32 = 0

@Suite struct ProcessNumberTests {
    @Test func `a process keeps its number, and a child has another one`() {
        numberOfParent = clinux_process_number()
        #expect(numberOfParent != 0 && clinux_process_number() == numberOfParent)
        // The child ends at once, with its number of threads: 1.
        let threads = cunwind_test_fork { if clinux_process_number() == numberOfParent { _exit(7) } }
        #expect(threads == 1)
        #expect(clinux_process_number() == numberOfParent)
    }

    /// A container's first process, and that of a sandbox in it.
    @Test func `a child with its parent's id has another number`() {
        let isOther = cunwind_test_fork_twin(
            { numberOfParent = clinux_process_number() }, { clinux_process_number() != numberOfParent })
        if isOther == 2 { return notRun("the system permits no PID namespaces") }
        #expect(isOther == 1)
    }
}

private let inheritedJobs = JobThread(name: "jobs")
private let inheritedLock = ProcessMutex(1)
/// The process in which the second job of the parent ran; 0 before.
private let processOfJob = Atomic<UInt32>(0)

@Suite struct ForkedStateTests {
    /// The file system for which a job of the parent waits may answer in the child.
    @Test func `a child runs its own jobs, and none of its parent's`() {
        let (hasBegun, mayGoOn) = (LinuxSupport.Semaphore(), LinuxSupport.Semaphore())
        inheritedJobs.add {
            hasBegun.post()
            mayGoOn.wait()
        }
        inheritedJobs.add { processOfJob.store(clinux_process_number(), ordering: .relaxed) }
        hasBegun.wait()
        let status = cunwind_test_fork {
            let hasRun = LinuxSupport.Semaphore()
            inheritedJobs.add { hasRun.post() }
            hasRun.wait()
            _exit(processOfJob.load(ordering: .relaxed) == 0 ? 7 : 8)
        }
        mayGoOn.post()
        #expect(status == 7)
        #expect(eventually { processOfJob.load(ordering: .relaxed) == clinux_process_number() })
    }

    @Test func `a lock that is held at a fork is free in the child`() {
        let status = inheritedLock.withLock { value in
            value = 2
            return cunwind_test_fork { _exit(inheritedLock.withLock { $0 } == 1 ? 7 : 8) }
        }
        #expect(status == 7)
        #expect(inheritedLock.withLock { $0 } == 2)
    }

    @Test func `each process has a value of its own`() {
        let process = Atomic<UInt32>(1)
        let values = Atomic<Int>(0)
        let mutex = ProcessMutex(in: { process.load(ordering: .relaxed) }) {
            values.add(1, ordering: .relaxed).newValue * 10
        }
        mutex.withLock { $0 += 1 }
        #expect(mutex.withLock { $0 } == 11)
        process.store(2, ordering: .relaxed)
        #expect(mutex.withLock { $0 } == 20)
    }

    /// A thread of the parent may have changed half of the value.
    @Test(arguments: [UInt32(1), 2]) func `a value is destroyed in its own process alone`(last: UInt32) {
        let process = Atomic<UInt32>(1)
        weak var value: LinuxSupport.Semaphore?
        do {
            let mutex = ProcessMutex(in: { process.load(ordering: .relaxed) }) { LinuxSupport.Semaphore() }
            value = mutex.withLock { $0 }
            withExtendedLifetime(mutex) { process.store(last, ordering: .relaxed) }
        }
        #expect((value == nil) == (last == 1))
    }
}

@Suite struct ProcessPauseTests {
    @Test(
        arguments: [
            (["T", "T"], .signal), (["t", "t"], .debugger), (["Z", "T", "T"], .signal), (["t", "T"], .signal),
            (["T", "S"], nil), (["S"], nil), ([], nil), (["Z"], nil),
        ] as [([String], ProcessPause?)])
    func `a process is paused if all its threads are`(states: [String], pause: ProcessPause?) {
        #expect(ProcessPause.ofThreads(states) == pause)
    }

    @Test func `a stopped process is found, and one that goes on`() throws {
        let process = Command(program: "/bin/sleep", arguments: ["60"]).process()
        try process.run(atMost: 60)
        defer { process.kill() }
        let pid = process.processIdentifier
        #expect(ProcessPause.of(pid) == nil)
        kill(pid, SIGSTOP)
        #expect(eventually { ProcessPause.of(pid) == .signal })
        kill(pid, SIGCONT)
        #expect(eventually { ProcessPause.of(pid) == nil })
    }

    @Test func `no process is not paused`() {
        #expect(ProcessPause.of(0x3fff_fff0) == nil)
    }

    @Test func `both versions of cgroups have a file`() {
        #expect(
            ProcessPause.freezerFiles("0::/system.slice/a.service\n") == [
                "/sys/fs/cgroup/system.slice/a.service/cgroup.events"
            ])
        #expect(
            ProcessPause.freezerFiles("7:freezer:/docker/1\n3:cpu,cpuacct:/x\n1:name=systemd:/y\n") == [
                "/sys/fs/cgroup/freezer/docker/1/freezer.state"
            ])
        #expect(ProcessPause.freezerFiles("nonsense") == [])
        #expect(ProcessPause.saysFrozen("populated 1\nfrozen 1\n"))
        #expect(!ProcessPause.saysFrozen("populated 1\nfrozen 0\n"))
        #expect(ProcessPause.saysFrozen("FROZEN\n"))
        #expect(!ProcessPause.saysFrozen("THAWED\n"))
    }
}

@Suite struct RunningProcessTests {
    private func process(_ id: Int32, of parent: Int32) -> RunningProcess {
        RunningProcess(id: id, parent: parent, command: "p", state: "S", startTicks: 0)
    }

    @Test func `descendants are found over several generations, and a cycle ends`() {
        let all = [process(1, of: 0), process(5, of: 4), process(4, of: 2), process(2, of: 1), process(3, of: 1)]
        #expect(RunningProcess.descendants(of: 2, among: all).map(\.id) == [4, 5])
        #expect(RunningProcess.descendants(of: 1, among: all).map(\.id) == [2, 3, 4, 5])
        #expect(RunningProcess.descendants(of: 3, among: all).isEmpty)
        // The list is not of one moment, so a reused id may seem to be its own ancestor.
        let cycle = [process(2, of: 3), process(3, of: 2)]
        #expect(RunningProcess.descendants(of: 2, among: cycle).map(\.id) == [3])
    }

    @Test func `this process is found`() throws {
        let own = try #require(RunningProcess(id: getpid()))
        #expect(own.parent == getppid())
        #expect(!own.command.isEmpty)
        #expect(RunningProcess.all().contains { $0.id == getpid() && $0.startTicks == own.startTicks })
        #expect(RunningProcess(id: 0x3fff_fff0) == nil)
    }
}

@Suite struct ClockTests {
    @Test(
        arguments: [
            (.zero, 0), (.nanoseconds(1), 1), (.milliseconds(250), 250_000_000), (.seconds(86_400), 86_400_000_000_000),
            (.seconds(9_223_372_036), 9_223_372_036_000_000_000), (.seconds(9_223_372_037), UInt64(Int64.max)),
            (.seconds(Int64.max), UInt64(Int64.max)), (.nanoseconds(-1), 0), (.seconds(-1), 0),
            (.seconds(Int64.min), 0),
            // Fractions of a nanosecond are dropped.
            (Duration(secondsComponent: 1, attosecondsComponent: 1_999_999_999), 1_000_000_001),
        ] as [(Duration, UInt64)])
    func aDurationConvertsToNanoseconds(duration: Duration, value: UInt64) {
        #expect(nanoseconds(duration) == value)
    }
}

@Test func `a thread that the kernel leaves out of a list is found`() {
    var lists: [[Int32]] = [[7, 3], [3, 7, 9], [3, 9], [11]]
    #expect(threads { lists.removeFirst() } == [3, 7, 9])
    #expect(lists == [[11]])
}

@Suite struct ProbedThreadTests {
    @Test(arguments: [true, false])
    func `the thread is gone afterwards`(isWaiting: Bool) throws {
        let thread = try ProbedThread.run(isWaiting: isWaiting) { $0 }
        // It is joined, but the kernel removes its entry in /proc a moment later.
        let deadline = endOfPatience
        while ThreadIdentity.all().contains(thread), monotonicNow() < deadline { nap() }
        #expect(!ThreadIdentity.all().contains(thread))
    }

    @Test func `the given signal is not blocked`() throws {
        let blocked = try ProbedThread.run(isWaiting: true, signal: SIGUSR2) { blockedSignals(of: "self/task/\($0)") }
        #expect(blocked?.contains(SIGUSR2) == false)
        #expect(blocked?.contains(SIGUSR1) == true)
    }
}

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
        let gate = LinuxSupport.Semaphore()
        let worker = try WorkerThread(name: "any name") {
            id.store(ownThread() ?? 0, ordering: .releasing)
            gate.wait()
        }
        #expect(eventually { WorkerThread.ids.contains(id.load(ordering: .acquiring)) })
        gate.post()
        let before = monotonicNow()
        worker.join()
        #expect(!WorkerThread.ids.contains(id.load(ordering: .acquiring)))
        // Until the kernel has no such thread, its stack may tell nothing.
        #expect(WorkerThread.ended(since: before - 1_000_000_000).contains(id.load(ordering: .acquiring)))
        #expect(!WorkerThread.ended(since: .max).contains(id.load(ordering: .acquiring)))
        let own = try #require(ownThread())
        #expect(!WorkerThread.ids.contains(own))
        #expect(WorkerThread.asOwnThread { WorkerThread.ids.contains(own) })
        #expect(!WorkerThread.ids.contains(own))
    }

    @Test func `what a monitor's thread has used stays counted after its end`() throws {
        let (before, used) = (WorkerThread.use, UInt64(1_000_000))
        let worker = try WorkerThread(name: "any name") { while threadTimeNow() < used {} }
        worker.join()
        // A thread of another test that ends meanwhile is not counted for a moment.
        #expect(eventually { WorkerThread.use.nanoseconds >= before.nanoseconds + used })
    }

    @Test func `a thread has settings of its own`() throws {
        #if arch(arm64)
            let upward: Int32 = 0x400000
        #else
            let upward: Int32 = 0x800
        #endif
        let seen = Mutex<cunwind_test_thread_settings?>(nil)
        let name = Mutex<String?>(nil)
        let rounding = Atomic<Int32>(-1)
        let done = LinuxSupport.Semaphore()
        let app = Thread {
            cunwind_test_take_odd_settings()
            clinux_name_this_thread("test-app")
            #expect(fesetround(upward) == 0)
            let worker = try? WorkerThread(name: "test-own") {
                seen.withLock { $0 = cunwind_test_own_settings() }
                name.withLock { $0 = readSmallFile("/proc/thread-self/comm").map(firstLine) }
                rounding.store(fegetround(), ordering: .relaxed)
            }
            worker?.join()
            done.post()
        }
        app.stackSize = 64 << 10
        app.start()
        done.wait()
        let own = try #require(seen.withLock { $0 })
        #expect(own.has_usual_policy)
        #expect(own.has_all_processors)
        #expect(own.stack_bytes >= WorkerThread.stackBytes.usual)
        // TIMER_SLACK of own_thread.h.
        #expect(own.timer_slack == 50_000)
        #expect(name.withLock { $0 } == "test-own")
        #expect(rounding.load(ordering: .relaxed) == 0, "to nearest (FE_TONEAREST)")
    }

    @Test func `a thread may run where a given one may`() throws {
        let (gate, begun, ended) = (LinuxSupport.Semaphore(), LinuxSupport.Semaphore(), LinuxSupport.Semaphore())
        let id = Atomic<Int32>(0)
        let first = Thread {
            cunwind_test_take_odd_settings()
            id.store(callingThread, ordering: .releasing)
            begun.post()
            gate.wait()
            ended.post()
        }
        first.start()
        begun.wait()
        var processors: Int32 = 0
        try withUnsafeMutablePointer(to: &processors) { found in
            var thread = pthread_t()
            let status = clinux_start_thread(
                &thread, 64 << 10, id.load(ordering: .acquiring),
                { found in
                    found?.storeBytes(of: clinux_usable_processors(0), as: Int32.self)
                    return nil
                }, found)
            try #require(status == 0)
            pthread_join(thread, nil)
        }
        gate.post()
        ended.wait()
        #expect(processors == 1)
    }

    @Test func `a thread runs no handler of the app at its beginning`() throws {
        var (none, before, blocked, after) = (sigset_t(), sigset_t(), sigset_t(), sigset_t())
        sigemptyset(&none)
        // The threads of Dispatch block these signals.
        pthread_sigmask(SIG_SETMASK, &none, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        try withUnsafeMutablePointer(to: &blocked) { mask in
            var thread = pthread_t()
            let status = clinux_start_thread(
                &thread, 64 << 10, 0,
                { mask in
                    pthread_sigmask(SIG_BLOCK, nil, mask?.assumingMemoryBound(to: sigset_t.self))
                    return nil
                }, mask)
            try #require(status == 0)
            pthread_join(thread, nil)
        }
        pthread_sigmask(SIG_BLOCK, nil, &after)
        for signal in [SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM] {
            let (isBlocked, isBlockedAfter) = (sigismember(&blocked, signal), sigismember(&after, signal))
            #expect(isBlocked == 1)
            #expect(isBlockedAfter == 0, "those of the caller stay as they are")
        }
    }

    /// Profilers send SIGPROF to any thread that uses a CPU.
    @Test func `a signal does not end a wait`() throws {
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in }
        var previous = sigaction()
        sigaction(SIGPROF, &action, &previous)
        defer { sigaction(SIGPROF, &previous, nil) }
        let semaphore = LinuxSupport.Semaphore()
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
