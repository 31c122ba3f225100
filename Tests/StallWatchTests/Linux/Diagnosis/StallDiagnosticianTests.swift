import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// A thread that waits for a mutex which the test holds.
@Suite struct StallDiagnosticianTests {
    /// Initialized before the thread starts, and destroyed after it has ended.
    private final class HeldMutex: @unchecked Sendable {
        let pointer = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        init() { pthread_mutex_init(pointer, nil) }
        deinit {
            pthread_mutex_destroy(pointer)
            pointer.deallocate()
        }
    }

    /// Runs `body` with the id of the thread, once it waits, and the address of the mutex.
    private func withWaiter(_ body: (Int32, UInt64) throws -> Void) throws {
        let mutex = HeldMutex()
        let id = Atomic<Int32>(0)
        pthread_mutex_lock(mutex.pointer)
        let thread = try WorkerThread(name: "waiter") {
            id.store(ownThread() ?? -1, ordering: .releasing)
            pthread_mutex_lock(mutex.pointer)
            pthread_mutex_unlock(mutex.pointer)
        }
        defer {
            pthread_mutex_unlock(mutex.pointer)
            thread.join()
        }
        try #require(eventually { id.load(ordering: .acquiring) != 0 })
        let probe = try ThreadProbe(thread: id.load(ordering: .acquiring))
        try #require(eventually { probe.read()?.activity.call?.name == "futex" })
        try body(probe.thread, UInt64(UInt(bitPattern: mutex.pointer)))
    }

    /// A loop without early checks has one reading from before its threshold, which has no stack.
    @Test func `a wait that was read before its first sample keeps its lock`() throws {
        try withWaiter { id, address in
            let threads = ProcessThreads(capturer: StubCapturer())
            var diagnostician = StallDiagnostician(threads: threads, waits: WaitClock())
            let start = monotonicNow()
            // The reading before the turn, and the one within it.
            diagnostician.prepare(id, turn: start - 1, threshold: 1, now: start)
            diagnostician.prepare(id, turn: start, threshold: 1, now: start + 1)
            let stack = CapturedStack.stub([0x1000])
            let observed = diagnostician.observeLate(id, nil, stack: stack)
            let kept = diagnostician.kept(
                try #require(observed), stack: stack, start: start, isFirst: true, end: nil)
            #expect(kept.count == 1, "the thread was in this place since the reading before")
            let concluded = diagnostician.cause(id, start: start, kept)
            let cause = try #require(concluded)
            #expect(cause.kind == .lock)
            #expect(cause.observation?.lock?.lock.address == address, "\(cause)")
        }
    }

    /// The kernel gives the number of a thread that has ended to another one.
    @Test func `a thread that began after the wait owns nothing`() throws {
        try withWaiter { id, _ in
            let threads = ProcessThreads(capturer: StubCapturer())
            #expect(!threads.isYounger(id, than: monotonicNow()))
            #expect(threads.isYounger(id, than: monotonicNow() / 2))
            #expect(!threads.isYounger(0x3fff_fff0, than: 0), "of a thread that has ended nothing is known")
        }
    }

    @Test(arguments: [false, true])
    func `a reading after the end of the turn is no observation`(isOver: Bool) throws {
        let start = monotonicNow()
        try withWaiter { id, _ in
            var diagnostician = StallDiagnostician(
                threads: ProcessThreads(capturer: StubCapturer(.failure(.moved))), waits: WaitClock())
            let first = diagnostician.read(id)
            #expect(first != nil)
            let observed = diagnostician.observeLate(id, nil, stack: nil)
            let kept = diagnostician.kept(
                try #require(observed), stack: nil, start: start, isFirst: true, end: isOver ? start + 1 : nil)
            let cause = diagnostician.cause(id, start: start, kept)
            #expect(cause != nil)
            #expect(cause?.observation?.call?.name == (isOver ? nil : "futex"))
        }
    }
}

/// Stalls of a queue that changed its thread.
@Suite struct MovedStallTests {
    /// An id that no thread has (proc(5), pid_max).
    private static let thread = Int32.max

    /// Returns the cause of a stall of 2 s: its first thread computed, and the last one slept; by default they are two.
    ///
    /// The ages are in milliseconds.
    private func cause(
        of firstThread: Int32 = Self.thread - 1, computingAt first: UInt64, knownFrom age: UInt64
    ) throws -> Cause {
        var reading = ThreadReading(time: age * 1_000_000, onCPU: 0)
        (reading.state, reading.slices) = (UInt8(ascii: "S"), 1)
        var diagnostician = StallDiagnostician(threads: ProcessThreads(capturer: StubCapturer()), waits: WaitClock())
        diagnostician.begin(Self.thread, at: reading, CPUQuota())
        let number: Int = try #require(SystemCallNames.current.number(of: "clock_nanosleep"))
        let sleep = SystemCall(number: number, arguments: [0, 0, 0, 0, 0, 0], stackPointer: 0, programCounter: 0)
        let observations = [
            Observation(time: first * 1_000_000, thread: firstThread, activity: .running),
            Observation(time: (age + 1) * 1_000_000, thread: Self.thread, activity: .waiting(sleep)),
        ]
        // The report has the thread in which the stall began.
        let cause = diagnostician.end(Self.thread - 1, start: 0, end: 2_000_000_000, observations)
        return try #require(cause)
    }

    @Test func `the time before a queue moved is not that of its last thread`() throws {
        let most = try cause(computingAt: 100, knownFrom: 500)
        #expect(most.kind == .sleep && most.confidence == .likely)
        #expect(most.evidence.split.blocked == 1_500_000_000 && most.evidence.split.duration == 1_500_000_000)
        let least = try cause(computingAt: 100, knownFrom: 1_500)
        #expect(least.confidence == .possible && least.evidence.split.duration == 500_000_000)
    }

    /// A stack may have been copied before the first reading that is kept.
    @Test(arguments: [50, 101] as [UInt64])
    func `all of the time is that of a thread that stayed`(first: UInt64) throws {
        let whole = try cause(of: Self.thread, computingAt: first, knownFrom: 100)
        #expect(whole.kind == .sleep && whole.confidence == .certain)
        #expect(whole.evidence.split.duration == 2_000_000_000)
    }
}

/// The last reading of a wait with a time limit.
@Suite struct LimitedWaitTests {
    /// An id that no thread has (proc(5), pid_max).
    private static let thread = Int32.max

    /// A task that was pinned has left its thread at some time after the last look.
    @Test(arguments: [true, false])
    func `whether a limit has ended a wait is known only with its end`(isEndKnown: Bool) throws {
        var reading = ThreadReading(time: 100_000_000, onCPU: 0)
        (reading.state, reading.slices) = (UInt8(ascii: "S"), 1)
        var diagnostician = StallDiagnostician(threads: ProcessThreads(capturer: StubCapturer()), waits: WaitClock())
        diagnostician.begin(Self.thread, at: reading, CPUQuota())
        let end: UInt64 = 2_000_000_000
        var waiting = Observation(time: 101_000_000, thread: Self.thread, activity: .waiting(try futex(0)))
        waiting.lock = LockChain(
            lock: AwaitedLock(
                kind: .dispatchSemaphore, address: 8, hasTimeout: true,
                limit: TimeLimit(isRealtime: false, nanoseconds: 2 * end), ownership: .none))
        waiting.lock?.limit = 2 * end
        let cause = diagnostician.end(Self.thread, start: 0, end: end, [waiting], isEndKnown: isEndKnown)
        #expect(cause?.kind == .lock && cause?.observation?.lock != nil)
        #expect(cause?.observation?.lock?.endedByLimit == (isEndKnown ? false : nil))
    }
}
