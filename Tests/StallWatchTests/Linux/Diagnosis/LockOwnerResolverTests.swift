import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

/// Real locks in real memory whose words name threads that have ended: no owner may be reported.
@Suite struct DeadOwnerTests {
    /// The kernel ids of threads that have ended.
    private static func deadThreads(_ count: Int) throws -> [Int32] {
        let ids = Mutex<[Int32]>([])
        for index in 0..<count {
            let thread = try WorkerThread(name: "test-mortal-\(index)") {
                ids.withLock { $0.append(Self.currentID) }
            }
            thread.join()
        }
        // A joined thread may be listed for a moment longer; a number may be given to a new thread of another test.
        return ids.withLock { $0 }.filter { id in
            for _ in 0..<1_000 where (try? ThreadProbe(thread: id)) != nil { usleep(1_000) }
            return id > 0 && (try? ThreadProbe(thread: id)) == nil
        }
    }

    private static var currentID: Int32 {
        readLink("/proc/thread-self")?.split(separator: "/").last.flatMap { Int32($0) } ?? 0
    }

    private static func isLive(_ thread: Int32) -> Bool { (try? ThreadProbe(thread: thread).read()) != nil }

    private static let functions: [String?] = [
        "pthread_mutex_lock", "pthread_cond_wait", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "pthread_join",
        "dispatch_once_wait", "syscall", nil,
    ]

    /// The memory of a lock whose owner ended without unlocking it: all fields are consistent, but the owner is gone.
    private static func locks(of owner: Int32) -> [[Int32]] {
        let waitedFor = Int32(bitPattern: 0x8000_0000) | owner
        var writing = [Int32](repeating: 0, count: 16)
        (writing[0], writing[2], writing[6]) = (0xb, 3, owner)
        return [
            [2, 0, owner, 1, 0], [2, 1, owner, 1, 1], [2, 0, owner, 1, 2], [waitedFor, 1, owner, 1, 16], [waitedFor],
            [owner], writing,
        ].map { $0 + [Int32](repeating: 0, count: 16 - $0.count) }
    }

    @Test func noDeadThreadIsEverAnOwner() throws {
        let dead = try Self.deadThreads(8)
        try #require(dead.count >= 4, "most numbers are not used again at once")
        let number = try #require((0..<500).first { SystemCallNames.current.name($0) == "futex" })
        // Any other thread may end meanwhile.
        let living = Mutex<Int32>(0)
        let (begun, end) = (LinuxSupport.Semaphore(), LinuxSupport.Semaphore())
        let thread = try WorkerThread(name: "test-living") {
            living.withLock { $0 = Self.currentID }
            begun.post()
            end.wait()
        }
        defer {
            end.post()
            thread.join()
        }
        begun.wait()
        let own = living.withLock { $0 }
        try #require(Self.isLive(own))
        let identifier = LockIdentifier(memory: GuardedMemory(), isLive: Self.isLive)
        var named = 0
        for owner in dead + [own] {
            for words in Self.locks(of: owner) {
                words.withUnsafeBytes { bytes in
                    for offset in [0, 8, 12] as [UInt64] {
                        for operation in [128, 128 | 9, 0, 128 | 6, 128 | 13] as [UInt64] {
                            for function in Self.functions {
                                let address = UInt64(UInt(bitPattern: bytes.baseAddress)) + offset
                                let word = UInt64(UInt32(bitPattern: words[Int(offset / 4)]))
                                let call = SystemCall(
                                    number: number, arguments: [address, operation, word, 0, 0, 0], stackPointer: 0,
                                    programCounter: 0
                                )
                                let frames = [
                                    NamedFrame(function: nil, image: "libc.so.6"),
                                    NamedFrame(function: function, image: "libc.so.6"),
                                ]
                                let lock = identifier.identify(call, of: own, in: frames)
                                if let found = lock?.owner {
                                    named += 1
                                    #expect(found == own, "\(words) at \(offset), operation \(operation)")
                                }
                            }
                        }
                    }
                }
            }
        }
        #expect(named > 0, "a thread that lives is named in the same memory")
    }

    @Test func unreadableMemoryHasNoOwner() throws {
        let number = try #require((0..<500).first { SystemCallNames.current.name($0) == "futex" })
        let identifier = LockIdentifier(memory: GuardedMemory(), isLive: { _ in true })
        for address in [0, 1, 8, 12, 95, 4096, .max, .max - 3, .max - 100, 1 << 63] as [UInt64] {
            for operation in [128, 128 | 9, 0, 128 | 6] as [UInt64] {
                for function in Self.functions {
                    let call = SystemCall(
                        number: number, arguments: [address, operation, 2, 0, 0, 0], stackPointer: 0, programCounter: 0
                    )
                    let frames = [
                        NamedFrame(function: nil, image: "libc.so.6"),
                        NamedFrame(function: function, image: "libc.so.6"),
                    ]
                    #expect(identifier.identify(call, of: 1, in: frames)?.owner == nil)
                }
            }
        }
    }
}

@Suite struct DeadlockSearchTests {
    @Test func `threads that wait for each other`() {
        #expect(DeadlockSearch.deadlocked([1: 2, 2: 1]) == [1, 2])
        #expect(DeadlockSearch.deadlocked([1: 2, 2: 3, 3: 1, 4: 5]) == [1, 2, 3])
    }

    @Test func `a thread that waits for itself`() {
        #expect(DeadlockSearch.deadlocked([7: 7]) == [7])
    }

    @Test func `a thread that waits for a deadlocked one cannot go on`() {
        #expect(DeadlockSearch.deadlocked([9: 1, 1: 2, 2: 1]) == [1, 2, 9])
    }

    @Test func `a chain that ends is no deadlock`() {
        #expect(DeadlockSearch.deadlocked([1: 2, 2: 3]).isEmpty)
        #expect(DeadlockSearch.deadlocked([:]).isEmpty)
    }
}

@Suite struct OwnerWatchTests {
    /// Creates a reading of an owner, with times in milliseconds.
    private func reading(
        at time: UInt64, cpu: UInt64, queue: UInt64 = 0, state: Character = "R", switches: UInt64 = 0, nice: Int32? = 10
    ) -> ThreadReading {
        var reading = ThreadReading(time: time * 1_000_000, onCPU: cpu * 1_000_000)
        (reading.runQueue, reading.slices) = (queue * 1_000_000, 1)
        reading.state = state.asciiValue ?? 0
        (reading.nice, reading.voluntarySwitches) = (nice, switches)
        return reading
    }

    @Test func `an owner of lower priority without a CPU is an inversion`() throws {
        // schedstat counts a wait for a CPU when it ends.
        let readings = [reading(at: 100, cpu: 5), reading(at: 300, cpu: 8), reading(at: 600, cpu: 12, queue: 200)]
        let time = try #require(OwnerTime(readings, waiterNice: 0))
        #expect(time.split.duration == 500_000_000 && time.split.onCPU == 7_000_000)
        #expect(time.split.runQueue == 493_000_000 && time.isPriorityInversion)
        #expect(OwnerTime(readings, waiterNice: 10)?.isPriorityInversion == false)
        #expect(OwnerTime(readings, waiterNice: nil)?.isPriorityInversion == false)
    }

    @Test func `an owner that computes or sleeps is none`() throws {
        let computing = OwnerTime([reading(at: 100, cpu: 5), reading(at: 600, cpu: 305, queue: 90)], waiterNice: 0)
        #expect(computing?.isPriorityInversion == false && computing?.split.runQueue == 200_000_000)
        let sleeping = OwnerTime(
            [reading(at: 100, cpu: 5, state: "S"), reading(at: 600, cpu: 6, queue: 3, state: "S", switches: 2)],
            waiterNice: 0)
        #expect(sleeping?.isPriorityInversion == false && sleeping?.split.blocked == 496_000_000)
    }

    @Test func `half of the time is enough`() {
        func isInversion(_ queue: UInt64) -> Bool? {
            OwnerTime(
                [reading(at: 100, cpu: 5), reading(at: 600, cpu: 6, queue: queue, switches: 1)], waiterNice: 0
            )?.isPriorityInversion
        }
        #expect(isInversion(250) == true && isInversion(249) == false)
    }

    @Test func `one reading, or no schedstat, says nothing`() {
        var last = reading(at: 600, cpu: 6, queue: 400)
        #expect(OwnerTime([last], waiterNice: 0) == nil && OwnerTime([], waiterNice: 0) == nil)
        last.slices = 0
        #expect(OwnerTime([reading(at: 100, cpu: 5), last], waiterNice: 0) == nil)
        let unknown = [reading(at: 100, cpu: 5, nice: nil), reading(at: 600, cpu: 6, nice: nil)]
        #expect(OwnerTime(unknown, waiterNice: 0)?.isPriorityInversion == false)
    }
}

@Suite struct StallDiagnosticianTests {
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
    @Test func `a wait that was read before its first sample keeps its lock`() throws {
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
        let probe = try ThreadProbe(thread: id)
        try #require(eventually { probe.read()?.activity.call?.name == "futex" })
        let threads = ProcessThreads(capturer: FixedCapturer())
        var diagnostician = StallDiagnostician(threads: threads, waits: WaitClock())
        let start = monotonicNow()
        // The reading before the turn, and the one within it.
        diagnostician.prepare(id, turn: start - 1, threshold: 1, now: start)
        diagnostician.prepare(id, turn: start, threshold: 1, now: start + 1)
        let stack = CapturedStack.stub([0x1000])
        let observed = diagnostician.observeLate(id, nil, stack: stack, isFirst: true, earlier: [])
        let kept = diagnostician.kept(
            try #require(observed), stack: stack, start: start, isFirst: true, end: nil)
        #expect(kept.count == 1, "the thread was in this place since the reading before")
        let concluded = diagnostician.cause(id, start: start, kept)
        let cause = try #require(concluded)
        #expect(cause.kind == .lock)
        #expect(cause.observation?.lock?.lock.address == UInt64(UInt(bitPattern: waiter.mutex)), "\(cause)")
    }
}
