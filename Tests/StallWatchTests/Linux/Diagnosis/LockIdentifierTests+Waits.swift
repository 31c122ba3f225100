import Dispatch
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallWatch

// Waits for queues, groups, semaphores and the ends of threads: no mutexes.

extension LockIdentifierTests {
    /// struct sembuf: the number of the semaphore, the operation, and flags.
    @Test(
        arguments: [
            ([3 | 0 << 16, 0], 1, .systemSemaphoreZero), ([3 | -1 << 16, 0], 1, .systemSemaphore),
            // One of two may be what it waits for.
            ([3 | 0 << 16, 0], 2, .systemSemaphore),
        ] as [([Int32], UInt64, AwaitedLock.Kind)])
    func `an operation of 0 waits until the semaphore is 0`(
        words: [Int32], count: UInt64, kind: AwaitedLock.Kind
    ) throws {
        let call = SystemCall(
            number: try #require(SystemCallNames.current.number(of: "semtimedop")),
            arguments: [7, Block.address, count, 0, 0, 0], stackPointer: 0, programCounter: 0)
        let lock = identify(call, words, [])
        #expect(lock?.kind == kind && lock?.ownership == AwaitedLock.Ownership.none && lock?.hasTimeout == false)
    }

    @Test func aSyncOntoAQueueIsKnownByItsContext() throws {
        // 96 bytes of context before the event, whose address is 0x1060; the queue is at 0x1070.
        var words = [Int32](repeating: 0, count: 64)
        let event: UInt64 = 96
        (words[24], words[25]) = (-1, 100)
        words[(96 - 56) / 4] = Int32(Block.address)
        let queue = Block.address + 112
        words[(96 - 40) / 4] = Int32(queue)
        words[(112 + 56) / 4] = 105
        let lock = identify(try futex(plainWait, at: event, value: 0xffff_ffff), words, [])
        #expect(lock?.kind == .dispatchQueue)
        #expect(lock?.address == queue)
        #expect(lock?.owner == 105)
        #expect(lock?.function == nil, "it may be dispatch_barrier_sync")
        words[25] = 101
        #expect(identify(try futex(plainWait, at: event, value: 0xffff_ffff), words, [])?.kind == .futex)
    }

    /// The queue "child" at 0x2000 targets "shared" at 0x3000; thread 100 may run the child itself.
    @Test(
        arguments: [
            (0, 105, 105, "shared"), (100, 105, 105, "shared"), (106, 105, 106, "child"), (0, 0, nil, "child"),
            // Suspended, not activated, suspended by an item that still runs.
            (0x400_0000_0000_0000, 105, nil, "child"), (0x180_0000_0000_0000, 105, nil, "child"),
            (0x400_0000_0000_006a, 105, 106, "child"), (0, 0x400_0000_0000_0000, nil, "shared"),
        ] as [(UInt64, UInt64, Int32?, String)])
    func `a suspended queue has no owner, whatever its target runs`(
        state: UInt64, target: UInt64, owner: Int32?, label: String
    ) throws {
        let words: [UInt64: UInt64] = [
            0x1028: 0x1000, 0x1038: 0x2000, 0x1060: 0x64_ffff_ffff,
            0x2018: 0x3000, 0x2038: state, 0x2048: 0x5ff8, 0x5ff8: 0x64_6c69_6863,
            0x3018: 0, 0x3038: target, 0x3048: 0x4ff8, 0x4ff8: 0x6465_7261_6873,
        ]
        let lock = LockIdentifier(memory: Words(words), isLive: { (100..<110).contains($0) })
            .identify(try futex(plainWait, at: 96), of: 100, in: [])
        #expect(lock?.kind == .dispatchQueue && lock?.owner == owner && lock?.label == label)
        #expect(lock?.address == (label == "child" ? 0x2000 : 0x3000))
        guard owner == nil else { return }
        let isSuspended = state > 0 || target > 0
        #expect(
            lock?.ownership
                == .unknown(
                    isSuspended
                        ? "it is suspended, or has not been activated"
                        : "no single thread runs the queue: it is concurrent, or has not been started"))
    }

    @Test(arguments: [
        ("sem_wait", AwaitedLock.Kind.semaphore), ("pthread_cond_wait", .condition), ("pthread_barrier_wait", .barrier),
        ("dispatch_group_wait", .dispatchGroup), ("dispatch_semaphore_wait", .dispatchSemaphore),
    ])
    func aLockWithoutAnOwnerSaysSo(function: String, kind: AwaitedLock.Kind) throws {
        let lock = identify(try futex(bitsetWait), [2, 0, 101, 1, 0], libc(function))
        #expect(lock?.kind == kind)
        #expect(lock?.ownership == AwaitedLock.Ownership.none)
    }

    /// sem_wait's own function has no name in a stripped libc.
    @Test func aSemaphoreIsKnownByItsContents() throws {
        #expect(identify(try futex(bitsetWait), [0, 1, 0, 0], libc(nil))?.kind == .semaphore)
        #expect(identify(try futex(bitsetWait), [0, 3, 128, 0], libc(nil))?.ownership == AwaitedLock.Ownership.none)
        for other in [[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, 7, 0], [0, -1, 0, 0]] as [[Int32]] {
            #expect(identify(try futex(bitsetWait), other, libc(nil))?.kind == .futex)
        }
        #expect(identify(try futex(bitsetWait, value: 1), [0, 1, 0, 0], libc(nil))?.kind == .futex)
        let raw = [NamedFrame(function: "syscall", image: "libc.so.6"), NamedFrame(function: nil, image: "app")]
        #expect(identify(try futex(bitsetWait), [0, 1, 0, 0], raw)?.kind == .futex)
    }

    @Test func aJoinWaitsForAThread() throws {
        #expect(identify(try futex(bitsetWait, value: 106), [106], libc("pthread_join"))?.owner == 106)
        #expect(identify(try futex(bitsetWait, value: 106), [107], libc("pthread_join"))?.owner == nil)
    }

    /// glibc 2.43: the word is a state, the id is elsewhere in the descriptor of the thread.
    @Test func `a joined thread whose futex is a state is found by its descriptor`() throws {
        func join(_ words: [Int32], _ descriptor: ThreadDescriptor?) throws -> Int32? {
            LockIdentifier(memory: Block(words), isLive: { 1..<110 ~= $0 }, descriptor: descriptor)
                .identify(try futex(bitsetWait, at: 8, value: 2), of: 100, in: libc("pthread_join"))?.owner
        }
        #expect(try join([106, 0, 2], ThreadDescriptor(idOffset: 4, 12)) == 106)
        #expect(try join([0, 0, 2], ThreadDescriptor(idOffset: 4, 12)) == nil)
        // Thread 2 is alive, in a container for instance, but the state is not its id.
        #expect(try join([106, 0, 2], nil) == nil)
    }

    @Test func `a dispatch group is known by its type where no function has a name`() throws {
        var words = [Int32](repeating: 0, count: 14)
        (words[0], words[1]) = (0x4000, 0)
        func kind(_ type: UInt64?, at offset: UInt64) throws -> AwaitedLock.Kind? {
            LockIdentifier(memory: Block(words), isLive: { _ in true }, groupType: type)
                .identify(
                    try futex(plainWait, at: offset), of: 100,
                    in: [
                        NamedFrame(function: "syscall", image: "libc.so.6"),
                        NamedFrame(function: nil, image: "libdispatch.so"),
                    ])?.kind
        }
        #expect(try kind(0x4000, at: 52) == .dispatchGroup)
        #expect(try kind(0x4008, at: 52) == .futex)
        #expect(try kind(nil, at: 52) == .futex)
        #expect(try kind(0x4000, at: 48) == .futex)
        #expect(DispatchLayout.groupType != nil)
    }

    @Test(arguments: [(-12, 3), (-9, 3), (-4, 1), (0, nil), (8, nil), (.min, nil)] as [(Int32, Int?)])
    func `a group's object counts its entries`(bits: Int32, entries: Int?) {
        let memory = Block([bits, 7])
        #expect(DispatchLayout.entries(ofGroupWaitedForAt: Block.address + 4, memory) == entries)
        #expect(DispatchLayout.entries(ofGroupWaitedForAt: Block.address, memory) == nil)
    }

    @Test func `the entries of a group are those that were not left`() throws {
        let group = DispatchGroup()
        for _ in 0..<3 { group.enter() }
        group.leave()
        let wrapped = try #require(GuardedMemory().dispatchObject(of: group))
        let generation = wrapped + DispatchLayout.generationOffset
        #expect(DispatchLayout.entries(ofGroupWaitedForAt: generation, GuardedMemory()) == 2)
        for _ in 0..<2 { group.leave() }
    }

    /// pthread_join jumps to a function without a name: the thread that is alive and the shared futex tell.
    @Test func aJoinIsKnownWithoutItsName() throws {
        let sharedWait: UInt64 = 9
        let lock = identify(try futex(sharedWait, value: 106), [106], libc(nil))
        #expect(lock?.kind == .threadJoin)
        #expect(lock?.function == "pthread_join")
        #expect(lock?.owner == 106)
        // A private futex, a thread of another process, the waiter itself, a thread that has ended.
        #expect(identify(try futex(bitsetWait, value: 106), [106], libc(nil))?.kind == .futex)
        for (value, word) in [(206, 206), (100, 100), (106, 0)] as [(UInt64, Int32)] {
            #expect(identify(try futex(sharedWait, value: value), [word], libc(nil))?.kind == .futex)
        }
    }

    @Test func `a wait of semtimedop with a time has a limit`() throws {
        let number = try #require(SystemCallNames.current.number(of: "semtimedop"))
        func hasTimeout(_ time: UInt64) -> Bool? {
            let call = SystemCall(
                number: number, arguments: [1, 0, 1, time, 0, 0], stackPointer: 0, programCounter: 0)
            return identify(call, [], [])?.hasTimeout
        }
        #expect(hasTimeout(0x7000) == true && hasTimeout(0) == false)
    }
}
