import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

struct Block: MemoryReading {
    static let address: UInt64 = 0x1000
    var block: [UInt8]

    init(_ words: [Int32]) {
        block = words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } }
    }

    func bytes(at address: UInt64, count: Int) -> [UInt8]? {
        guard address >= Self.address, address - Self.address + UInt64(count) <= UInt64(block.count) else { return nil }
        let start = Int(address - Self.address)
        return Array(block[start..<(start + count)])
    }
}

/// The number is found once, because the fuzz test below makes 100,000 calls.
private let futexNumber = (0..<500).first { SystemCallNames.current.name($0) == "futex" }

func futex(_ operation: UInt64, at offset: UInt64 = 0, value: UInt64 = 0, timeout: UInt64 = 0) throws
    -> SystemCall
{
    SystemCall(
        number: try #require(futexNumber), arguments: [Block.address &+ offset, operation, value, timeout, 0, 0],
        stackPointer: 0,
        programCounter: 0
    )
}

let plainWait: UInt64 = 128
let bitsetWait: UInt64 = 128 | 9
private let lockPI: UInt64 = 128 | 6
/// The priority ceiling 30 in the word of a mutex.
private let ceiling: Int32 = 30 << 19

func libc(_ function: String?) -> [NamedFrame] {
    [NamedFrame(function: nil, image: "libc.so.6"), NamedFrame(function: function, image: "libc.so.6")]
}

/// In these tests, threads 100 to 109 live, and the waiter is 100.
func identify(
    _ call: SystemCall, _ words: [Int32], _ frames: [NamedFrame], isShared: Bool = false
) -> AwaitedLock? {
    LockIdentifier(memory: Block(words), isLive: { (100..<110).contains($0) }, isShared: { _ in isShared })
        .identify(call, of: 100, in: frames)
}

@Suite struct LockIdentifierTests {
    /// A semaphore of value 0 with a waiter, and behind it the time limit: 5.25 s.
    @Test func `an absolute time limit is read with its clock`() throws {
        func limit(_ operation: UInt64, nanoseconds: Int32 = 250_000_000, timeout: UInt64 = 16) throws -> TimeLimit? {
            let call = try futex(operation, timeout: timeout == 0 ? 0 : Block.address + timeout)
            return identify(call, [0, 0, 0, 1, 5, 0, nanoseconds, 0], libc("sem_timedwait"))?.limit
        }
        #expect(try limit(bitsetWait) == TimeLimit(isRealtime: false, nanoseconds: 5_250_000_000))
        #expect(try limit(bitsetWait | 256) == TimeLimit(isRealtime: true, nanoseconds: 5_250_000_000))
        // A relative one, none, one that is not mapped, and one that is no time.
        #expect(try limit(plainWait) == nil && limit(bitsetWait, timeout: 0) == nil)
        #expect(try limit(bitsetWait, timeout: 24) == nil && limit(bitsetWait, nanoseconds: -1) == nil)
    }

    @Test(arguments: [(499, false), (500, true), (515, true), (530, nil)] as [(UInt64, Bool?)])
    func `a limit that was long over ended no wait`(end: UInt64, ended: Bool?) {
        #expect(TimeLimit.hasEnded(501_500_000, wait: end * 1_000_000 + 1_400_000) == ended)
    }

    @Test func `a limit is the same moment by both clocks`() throws {
        let limit = TimeLimit(isRealtime: true, nanoseconds: wallClockNow() + 60_000_000_000)
        let moment = try #require(limit.monotonic)
        let least = monotonicNow() + 30_000_000_000
        #expect(moment > least && moment < least + 60_000_000_000)
        #expect(TimeLimit(isRealtime: true, nanoseconds: 0).monotonic == nil)
    }

    /// The function that waits for the mutex is the linker's, or one of libc that lists libraries.
    @Test(
        arguments: [
            ("dl_iterate_phdr", "libc.so.6", .dynamicLinker),
            (nil, "ld-linux-x86-64.so.2", .dynamicLinker),
            (nil, "libnotes.so", .pthreadMutex),
            ("pthread_mutex_lock", "notes", .pthreadMutex),
        ] as [(String?, String, AwaitedLock.Kind)]) func `a mutex of the dynamic linker is distinguished from others`(
            caller: String?, image: String, kind: AwaitedLock.Kind
        ) throws
    {
        let frames =
            libc("pthread_mutex_lock") + [
                NamedFrame(function: caller, image: image), NamedFrame(function: nil, image: "ld-linux-x86-64.so.2"),
            ]
        let lock = identify(try futex(plainWait, value: 2), [2, 1, 101, 1, 1], frames)
        #expect(lock?.kind == kind)
        #expect(lock?.owner == 101)
    }

    // The fields: __lock, __count, __owner, __nusers, __kind.
    @Test(
        arguments: [
            [2, 0, 101, 1, 0], [2, 1, 101, 1, 1], [2, 0, 101, 1, 2], [2, 0, 101, 1, 3], [2, 0, 101, 1, 0x200],
            [2, 0, 101, 3, 128], [2 | ceiling, 0, 101, 1, 64], [2 | ceiling, 1, 101, 1, 65],
        ] as [[Int32]])
    func aMutexNamesItsOwner(fields: [Int32]) throws {
        let lock = identify(try futex(plainWait, value: 2), fields, libc("pthread_mutex_lock"))
        #expect(lock?.kind == .pthreadMutex)
        #expect(lock?.owner == 101)
    }

    @Test(
        arguments: [
            [1, 0, 101, 1, 0], [0, 0, 0, 0, 0], [2, 0, 0, 1, 0], [2, 5, 101, 1, 0], [2, 0, 101, 1, 1],
            [2, 0, 101, 0, 0],
            [2, 0, 999, 1, 0], [2, 0, -5, 1, 0], [2, 0, 101, 1, 64], [2, 0, 101, 1, 4096],
            [1 | ceiling, 0, 101, 1, 64], [2 | ceiling, 0, 101, 1, 0], [Int32.min | 2, 0, 101, 1, 64],
        ] as [[Int32]])
    func aMutexWhoseFieldsDisagreeHasNoOwner(fields: [Int32]) throws {
        #expect(identify(try futex(plainWait, value: 2), fields, libc("pthread_mutex_lock"))?.owner == nil)
    }

    /// A task's mutex is its last field: 168 bytes from its beginning, with the words of SwiftTaskMemory before.
    @Test(arguments: [(0x77, 0, "91"), (0x77, 1, nil), (0x78, 0, nil)] as [(Int32, Int32, String?)])
    func `a mutex in a task is the lock of its status`(metadata: Int32, kind: Int32, label: String?) throws {
        var words = [Int32](repeating: 0, count: 42)
        (words[0], words[8], words[9]) = (metadata, kind, 91)
        words += [2, 1, 101, 1, 1]
        let identifier = LockIdentifier(memory: Block(words), isLive: { $0 == 101 }, taskMetadata: 0x77)
        let call = try futex(plainWait, at: 168, value: 2)
        let lock = identifier.identify(call, of: 100, in: libc("pthread_mutex_lock"))
        #expect(lock?.kind == (label == nil ? .pthreadMutex : .swiftTaskStatus))
        #expect(lock?.owner == 101 && lock?.label == label)
    }

    @Test func aRobustMutexIsKnownWithoutItsFunction() throws {
        let word = Int32(bitPattern: 0x8000_0000 | 101)
        #expect(identify(try futex(0, value: 0), [word, 1, 101, 1, 16], libc(nil))?.owner == 101)
        #expect(identify(try futex(0, value: 0), [word, 1, 102, 1, 16], libc(nil))?.owner == nil)
        // Another process's, which is not this one's thread with that id.
        let other = Int32(bitPattern: 0x8000_0000 | 4711)
        let shared = identify(try futex(0, value: 0), [other, 1, 4711, 1, 144], libc(nil))
        #expect(shared?.kind == .pthreadMutex && shared?.owner == nil)
        #expect(identify(try futex(plainWait, value: 0), [other, 1, 4711, 1, 16], libc(nil))?.kind == .futex)
    }

    /// A thread of another process, in another PID namespace, may have the number of the waiter itself.
    @Test(arguments: [100, 101] as [Int32])
    func `a lock in memory that processes share has no known owner`(number: Int32) throws {
        let (sharedWait, word): (UInt64, Int32) = (0, Int32(bitPattern: 0x8000_0000) | number)
        var fields = [Int32](repeating: 0, count: 13)
        (fields[0], fields[6]) = (0xb, number)
        let locks = [
            identify(
                try futex(sharedWait, value: 2), [2, 0, number, 1, 128], libc("pthread_mutex_lock"), isShared: true),
            identify(try futex(sharedWait), [word, 1, number, 1, 144], libc(nil), isShared: true),
            identify(try futex(6), [word], libc(nil), isShared: true),
            identify(try futex(9, at: 8), fields, libc("pthread_rwlock_rdlock"), isShared: true),
        ]
        #expect(locks.map { $0?.kind } == [.pthreadMutex, .pthreadMutex, .pthreadMutex, .pthreadReadWriteLock])
        for lock in locks {
            #expect(
                lock?.ownership == .unknown("processes share it, and a thread of another one may have the number in it")
            )
        }
        // The kernel shows that no other process waits for it, or has the memory.
        let isPrivate = identify(
            try futex(plainWait, value: 2), [2, 0, 101, 1, 0], libc("pthread_mutex_lock"), isShared: true)
        #expect(isPrivate?.owner == 101)
        #expect(
            identify(try futex(sharedWait, value: 2), [2, 0, 101, 1, 128], libc("pthread_mutex_lock"))?.owner == 101)
    }

    @Test func `a robust mutex of another process is known as a mutex`() throws {
        let word = Int32(bitPattern: 0x8000_0000 | 999)
        let lock = identify(try futex(0), [word, 1, 999, 1, 144], libc(nil), isShared: true)
        #expect(lock?.kind == .pthreadMutex)
        #expect(lock?.ownership == .unknown("the thread that locked it belongs to another process, or has ended"))
        #expect(identify(try futex(plainWait, value: 2), [2, 0, 999, 1, 0], libc(nil))?.kind == .futex)
    }

    @Test func aWaitForAnInheritingFutexNamesItsOwner() throws {
        let word = Int32(bitPattern: 0x8000_0000 | 103)
        let raw = [NamedFrame(function: "syscall", image: "libc.so.6"), NamedFrame(function: nil, image: "app")]
        #expect(identify(try futex(lockPI), [word], raw)?.kind == .swiftMutex)
        #expect(identify(try futex(lockPI), [word], raw)?.owner == 103)
        #expect(identify(try futex(lockPI), [word], libc(nil))?.kind == .pthreadMutex)
        #expect(identify(try futex(lockPI), [103], raw)?.owner == nil)
        #expect(identify(try futex(lockPI), [Int32(bitPattern: 0xc000_0000 | 103)], raw)?.owner == nil)
    }

    /// The kind of such a lock depends on the function that called futex(2); Swift's Mutex, swift_once and libdispatch
    /// use such a futex; a stripped executable does not show which.
    @Test(arguments: [
        ("libswiftCore.so", false, AwaitedLock.Kind.once), ("libswift_Concurrency.so", false, .once),
        ("libswiftSynchronization.so", false, .swiftMutex), ("libdispatch.so", false, .dispatchUnfairLock),
        ("app", false, .swiftMutex), ("app", true, .futex),
    ])
    func anInheritingFutexIsOfItsCallersKind(image: String, isStripped: Bool, kind: AwaitedLock.Kind) throws {
        let word = Int32(bitPattern: 0x8000_0000 | 103)
        let frames = [
            NamedFrame(function: "syscall", image: "libc.so.6"),
            NamedFrame(function: nil, image: image, isUnrecognizable: isStripped),
            NamedFrame(function: nil, image: "app"),
        ]
        let lock = identify(try futex(lockPI), [word], frames)
        #expect(lock?.kind == kind)
        #expect(lock?.owner == 103)
        #expect(lock?.function == (kind == .once ? "swift_once" : nil))
    }

    /// The stream at 0x1000 has its lock at 0x1010; the owner's descriptor is at 0x1020, with the thread's id 4 bytes in.
    @Test(arguments: [(101, 2, 101), (101, 1, nil), (999, 2, nil)] as [(Int32, Int32, Int32?)])
    func `a stream's lock names its owner`(thread: Int32, word: Int32, owner: Int32?) throws {
        let streams = StandardStreams(
            streams: [("stdout", { Block.address })], lockOffset: 8,
            threads: try #require(ThreadDescriptor(idOffset: 4, 4)))
        let words: [Int32] = [0, 0, 0x1010, 0, word, 1, 0x1020, 0, 0, thread]
        let identifier = LockIdentifier(memory: Block(words), isLive: { (100..<110).contains($0) }, streams: streams)
        let frames =
            libc(nil) + [
                NamedFrame(function: "fputs", image: "libc.so.6"), NamedFrame(function: "puts", image: "libc.so.6"),
                NamedFrame(function: "puts", image: "app"),
            ]
        let lock = identifier.identify(try futex(plainWait, at: 16, value: 2), of: 100, in: frames)
        #expect(lock?.kind == .stdio && lock?.label == "stdout" && lock?.function == "puts")
        #expect(lock?.owner == owner)
        let other = identifier.identify(try futex(plainWait, at: 20, value: 2), of: 100, in: frames)
        #expect(other?.kind != .stdio)
    }

    @Test func aReadWriteLockNamesItsWriter() throws {
        var fields = [Int32](repeating: 0, count: 13)
        (fields[0], fields[2], fields[6]) = (0xb, 3, 104)
        let reader = identify(try futex(bitsetWait, at: 8), fields, libc("pthread_rwlock_rdlock"))
        #expect(reader?.owner == 104)
        #expect(reader?.address == Block.address)
        #expect(identify(try futex(bitsetWait, at: 12), fields, libc("pthread_rwlock_wrlock"))?.owner == 104)
        // A writer that has ended, or is of another process, is no reader.
        fields[6] = 999
        let lost = identify(try futex(bitsetWait, at: 8), fields, libc("pthread_rwlock_rdlock"))
        #expect(lost?.address == Block.address)
        #expect(lost?.ownership == .unknown("the thread that locked it belongs to another process, or has ended"))
        // Readers hold the lock, and a writer waits for them.
        (fields[0], fields[6]) = (0xa, 0)
        let writer = identify(try futex(bitsetWait, at: 8), fields, libc("pthread_rwlock_wrlock"))
        #expect(writer?.address == Block.address)
        #expect(writer?.ownership == .unknown("1 reader owns it, and it does not store which threads they are"))
        // They have let go meanwhile.
        fields[0] = 0x2
        let late = identify(try futex(bitsetWait, at: 8), fields, libc("pthread_rwlock_wrlock"))
        #expect(late?.ownership == .unknown("readers own it, and it does not store them, or it was just released"))
    }

    private static let functions: [String?] = [
        "pthread_mutex_lock", "pthread_cond_wait", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock", "sem_wait",
        "dispatch_once_f", "dispatch_once_wait", "pthread_join", "syscall", nil,
    ]

    @Test(arguments: functions) func unreadableMemoryHasNoOwner(function: String?) throws {
        let identifier = LockIdentifier(memory: GuardedMemory(), isLive: { _ in true })
        for address in [0, 1, 8, 12, 95, 4096, .max, .max - 3, .max - 100, 1 << 63] as [UInt64] {
            for operation in [plainWait, bitsetWait, 0, lockPI] {
                let call = try futex(operation, at: address &- Block.address, value: 2)
                #expect(identifier.identify(call, of: 1, in: libc(function))?.owner == nil)
            }
        }
    }

    @Test func randomWordsNeverHaveAnOwner() throws {
        var generator = SeededGenerator(seed: 20)
        // Typical lock words; no thread 999 lives.
        let likely: [Int32] = [0, 1, 2, 3, -1, 999, Int32(bitPattern: 0x8000_0000 | 999)]
        var faults: [String] = []
        // Almost none of the other words names a live thread.
        for round in 0..<rounds(4_000) {
            var words = (0..<64).map { _ in Int32.random(in: .min ... .max, using: &generator) }
            for index in words.indices where Int.random(in: 0..<4, using: &generator) > 0 {
                words[index] = likely.randomElement(using: &generator) ?? 0
            }
            let operations: [UInt64] = [plainWait, bitsetWait, 0, lockPI, 11, 13]
            let operation = operations.randomElement(using: &generator) ?? plainWait
            let offset = UInt64.random(in: 0..<60, using: &generator) * 4
            let value = UInt64(UInt32(bitPattern: words[Int(offset / 4)]))
            let frames = libc(Self.functions[round % Self.functions.count])
            let lock = identify(try futex(operation, at: offset, value: value), words, frames)
            if lock?.owner != nil { faults.append("\(words) at \(offset), operation \(operation), in \(frames)") }
        }
        #expect(faults == [])
    }
}
