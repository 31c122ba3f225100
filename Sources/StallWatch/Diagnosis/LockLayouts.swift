import LinuxSupport

/// futex(2)'s operations and the words of its owner-keeping kinds.
enum Futex {
    enum Operation: Equatable {
        /// FUTEX_WAIT or FUTEX_WAIT_BITSET.
        case wait
        /// FUTEX_LOCK_PI or FUTEX_LOCK_PI2: the kernel itself keeps the owner in the word.
        case lockPriorityInheritance

        init?(_ argument: UInt64) {
            switch Futex.command(argument) {
            case 0, 9: self = .wait
            case 6, 13: self = .lockPriorityInheritance
            default: return nil
            }
        }
    }

    /// Whether it is FUTEX_WAIT itself.
    static func isPlainWait(_ argument: UInt64) -> Bool { command(argument) == 0 }

    /// Without FUTEX_PRIVATE_FLAG (128) and FUTEX_CLOCK_REALTIME (256).
    private static func command(_ argument: UInt64) -> UInt64 { argument & 0xffff_ffff & ~(128 | 256) }

    /// FUTEX_TID_MASK, FUTEX_OWNER_DIED and FUTEX_WAITERS of linux/futex.h.
    struct Word {
        var owner: Int32
        var ownerDied: Bool
        var hasWaiters: Bool

        init(_ word: Int32) {
            owner = word & 0x3fff_ffff
            ownerDied = word & 0x4000_0000 != 0
            hasWaiters = word < 0
        }
    }
}

/// The fields of glibc's struct __pthread_mutex_s that tell the owner.
struct PthreadMutex {
    /// `__nusers`: the owner, and each thread that has given the mutex up for a condition that it waits for.
    private static let users: ClosedRange<Int32> = 1...100_000

    private let lock, owner, users, kind: Int32
    private let count: UInt32

    init?(at address: UInt64, _ memory: any MemoryReading) {
        guard let bytes = memory.bytes(at: address, count: 20) else { return nil }
        let fields = bytes.int32s
        (lock, count, owner, users, kind) = (fields[0], UInt32(bitPattern: fields[1]), fields[2], fields[3], fields[4])
    }

    /// The owner of a mutex that somebody waits for, if all fields agree that it is one.
    ///
    /// `__owner` is written after the lock is taken and cleared before it is given back, so where it names a thread, that
    /// thread has the lock. PI mutexes are told by their futex operation already.
    var ownerWhileWaitedFor: Int32? {
        let typeMask: Int32 = 3
        let robust: Int32 = 16
        // Robust, process-shared and the two elision bits; anything else is a PI or ceiling mutex, or no mutex.
        guard kind & ~(typeMask | robust | 128 | 256 | 512) == 0, owner > 0, Self.users ~= users else { return nil }
        let isRecursive = kind & typeMask == 1
        if kind & robust != 0 {
            let word = Futex.Word(lock)
            return word.hasWaiters && !word.ownerDied && word.owner == owner ? owner : nil
        }
        // 2: locked, and somebody waits (lowlevellock.h). Only a recursive mutex counts.
        return lock == 2 && (isRecursive ? count >= 1 : count == 0) ? owner : nil
    }
}

/// The fields of glibc's struct __pthread_rwlock_arch_t that tell the writer.
struct PthreadReadWriteLock {
    private let readers: UInt32
    private let writer: Int32
    private let flags: UInt32

    init?(at address: UInt64, _ memory: any MemoryReading) {
        guard address % 4 == 0, let bytes = memory.bytes(at: address, count: 52) else { return nil }
        let fields = bytes.int32s
        // __readers at 0, __cur_writer at 24, __flags at 48 (PTHREAD_RWLOCK_PREFER_…: 0 to 2).
        (readers, writer, flags) = (UInt32(bitPattern: fields[0]), fields[6], UInt32(bitPattern: fields[12]))
    }

    /// The writer that has the lock.
    ///
    /// PTHREAD_RWLOCK_WRPHASE (1) and PTHREAD_RWLOCK_WRLOCKED (2) are both set then (pthread_rwlock_common.c).
    var writerWhileHeld: Int32? {
        readers & 3 == 3 && writer > 0 && flags <= 2 ? writer : nil
    }
}

/// glibc's struct new_sem on 64-bit machines (nptl/sem_waitcommon.c): the value and the number of waiters in one word,
/// and behind it whether it is private to the process, as a futex flag.
enum PosixSemaphore {
    /// Who waits at the same time, at most, in what is believed to be a semaphore.
    private static let waiters: ClosedRange<Int32> = 1...100_000

    /// Whether it looks like a semaphore that threads wait for: those wait for as long as its value is 0.
    static func isWaitedFor(at address: UInt64, _ expected: UInt64, _ memory: any MemoryReading) -> Bool {
        guard expected == 0, address % 8 == 0, let value = memory.integer(at: address),
            let waiting = memory.integer(at: address &+ 4), let flag = memory.integer(at: address &+ 8)
        else { return false }
        return value == 0 && waiters ~= waiting && (flag == 0 || flag == 128)
    }
}

/// Private layouts of libdispatch on 64-bit Linux (queue_internal.h, lock.h), each checked by its own contents before
/// it is believed.
///
/// Measured with the Swift 6.3 toolchain's library.
enum DispatchLayout {
    /// `dq_state`, whose low 30 bits are the thread that drains the queue (DLOCK_OWNER_MASK).
    static let stateOffset: UInt64 = 56
    static let targetOffset: UInt64 = 24
    static let labelOffset: UInt64 = 72
    /// Queues that target each other, followed at most.
    static let maximumTargets = 8

    /// The queue that a `dispatch_sync` or its like waits for.
    ///
    /// Such a thread waits on the word `dsc_event` of a struct dispatch_sync_context_s on its own stack. The word is
    /// UINT32_MAX while it waits; behind it is the waiter's thread id; 56 bytes before it is `dc_ctxt`, which points to
    /// the struct itself, 96 bytes before it; and 40 bytes before it is `dc_other`, the queue. Three values that agree
    /// cannot be there by chance.
    static func queue(ofWaiter waiter: Int32, waitingOn event: UInt64, _ memory: any MemoryReading) -> UInt64? {
        guard event > 96, memory.integer(at: event) == -1, memory.integer(at: event + 4) == waiter,
            memory.word(at: event - 56) == event - 96, let queue = memory.word(at: event - 40), queue != 0
        else { return nil }
        return queue
    }

    /// The thread that runs the queue, or the queue that it targets.
    ///
    /// A waiter may already have its own queue and wait for the target: `besides` is passed over.
    static func owner(of queue: UInt64, besides waiter: Int32, _ memory: any MemoryReading) -> Int32? {
        var queue = queue
        for _ in 0..<maximumTargets {
            guard let state = memory.word(at: queue &+ stateOffset) else { return nil }
            let owner = Int32(truncatingIfNeeded: state & 0x3fff_ffff)
            if owner != 0, owner != waiter { return owner }
            guard let target = memory.word(at: queue &+ targetOffset), target != 0 else { return nil }
            queue = target
        }
        return nil
    }

    /// The queue's label, if it is one that can be printed.
    static func label(of queue: UInt64, _ memory: any MemoryReading) -> String? {
        guard let address = memory.word(at: queue &+ labelOffset), let text = memory.string(at: address),
            text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f })
        else { return nil }
        return text
    }
}

extension [UInt8] {
    /// The bytes as little-endian 32-bit integers.
    fileprivate var int32s: [Int32] {
        stride(from: 0, to: count - 3, by: 4).map { at in
            Int32(bitPattern: (0..<4).reversed().reduce(0) { $0 << 8 | UInt32(self[at + $1]) })
        }
    }
}
