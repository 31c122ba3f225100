import StallReports
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

@Suite struct DeadlockSearchTests {
    /// Threads that wait for each other, for themselves, and for a deadlocked one; a chain that ends is no deadlock.
    @Test(
        arguments: [
            ([1: 2, 2: 1], [1, 2]), ([1: 2, 2: 3, 3: 1, 4: 5], [1, 2, 3]), ([7: 7], [7]),
            ([9: 1, 1: 2, 2: 1], [1, 2, 9]), ([1: 2, 2: 3], []), ([:], []),
        ] as [([Int32: Int32], Set<Int32>)])
    func `threads in a circle, and those that wait for them, are deadlocked`(
        waits: [Int32: Int32], deadlocked: Set<Int32>
    ) {
        #expect(DeadlockSearch.deadlocked(waits) == deadlocked)
    }

    /// The first thread goes on when its time is over, and with it the others.
    @Test(arguments: [false, true]) func `a circle with a time limit is no deadlock`(hasTimeout: Bool) {
        func wait(for owner: Int32, hasTimeout: Bool = false) -> ThreadWait {
            ThreadWait(
                call: StallReport.SystemCall(number: 202, name: "futex", target: nil),
                lock: AwaitedLock(kind: .pthreadMutex, hasTimeout: hasTimeout, ownership: .thread(owner)))
        }
        let waits: [Int32: ThreadWait] = [
            1: wait(for: 2, hasTimeout: hasTimeout), 2: wait(for: 1), 3: wait(for: 1),
        ]
        let deadlocked: Set<Int32> = hasTimeout ? [] : [1, 2, 3]
        #expect(DeadlockSearch.deadlocked(waits.compactMapValues(\.blocker)) == deadlocked)
    }

    /// This thread runs: it has its lock by now, and has not waited again, so the number of its waits is the same.
    @Test func `a thread that has gone on since its wait was read is in no deadlock`() throws {
        let thread = callingThread
        let threads = ProcessThreads(capturer: StubCapturer())
        let runs = try #require(threads.state(of: thread)).runs
        // A lock with priority inheritance, whose word has its owner and the bit for waiting threads.
        let call = try futex(128 | 6)
        let lock = AwaitedLock(kind: .swiftMutex, address: Block.address, ownership: .thread(thread))
        let link = LockOwnerResolver.Link(
            thread: thread, state: .init(activity: .waiting(call), runs: runs), call: call, frames: [], lock: lock)
        var waits = [
            thread: ThreadWait(
                call: StallReport.SystemCall(number: 202, name: "futex", target: nil), lock: lock, link: link)
        ]
        LockOwnerResolver(threads: threads, memory: Block([thread | .min])).markDeadlocks(&waits)
        #expect(waits[thread]?.isDeadlock == false)
    }
}

@Suite struct SharedMemoryTests {
    @Test func `memory that is not known to be private may be shared`() {
        let threads = ProcessThreads(capturer: StubCapturer())
        let own = UnsafeMutablePointer<Int>.allocate(capacity: 1)
        defer { own.deallocate() }
        for _ in 0..<2 {
            #expect(!threads.sharesMemory(at: UInt64(UInt(bitPattern: own))))
            #expect(threads.sharesMemory(at: 0), "nothing is mapped there")
        }
    }

    /// Thousands of loops may wait for pages, or for locks, at once.
    @Test func `the list of mappings is read once for all loops`() {
        var reads: UInt64 = 0
        let threads = ProcessThreads(
            capturer: StubCapturer(),
            maps: {
                reads += 1
                return "1000-2000 rw-s 00000000 00:00 7 /srv/notes\n"
            })
        let began = monotonicNow()
        for _ in 0..<1_000 {
            #expect(threads.mapping(of: 0x1fff)?.file == "/srv/notes")
            #expect(threads.mapping(of: 0x2000) == nil)
        }
        // An address that it lacks may have been mapped meanwhile.
        #expect(reads <= (monotonicNow() - began) / 10_000_000 + 1)
    }

    @Test func `what is the same for all loops is read once in a pass`() {
        let threads = ProcessThreads(capturer: StubCapturer())
        threads.beginPass()
        let first = threads.steal.time
        #expect(threads.steal.time == first && threads.processors > 0)
        threads.beginPass()
        #expect(threads.steal.time != first)
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

    /// The owner has the nice value 10, and ran last on CPU 1.
    @Test(
        arguments: [
            // The state, the priority and the CPU of each other thread; how many CPUs the owner may use of two.
            ([("R", 20, 1)], 1, true), ([("R", 20, 0), ("R", 20, 1)], 2, true),
            // One CPU is left; another thread has one; it sleeps; it is as nice.
            ([("R", 20, 1)], 2, false), ([("R", 20, 0)], 1, false), ([("S", 20, 1)], 1, false),
            ([("R", 30, 1)], 1, false),
            // A real-time thread has the CPU, whatever the nice value is.
            ([("R", -11, 1)], 1, false), ([("R", -11, 1), ("R", 20, 1)], 1, false),
        ] as [([(Character, Int32, Int32)], Int, Bool)])
    func `a nice value explains what threads with a lower one do`(
        others: [(Character, Int32, Int32)], usable: Int, yields: Bool
    ) throws {
        func stat(_ state: Character, _ priority: Int32, _ processor: Int32) throws -> ProcStat {
            var fields = (3...40).map(String.init)
            (fields[0], fields[18 - 3], fields[39 - 3]) = ("\(state)", "\(priority)", "\(processor)")
            return try #require(ProcStat("4700 (a) \(fields.joined(separator: " "))\n"))
        }
        let owner = try stat("R", 30, 1)
        #expect(try owner.yields(to: others.map(stat), usable: usable, online: 2) == yields)
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
