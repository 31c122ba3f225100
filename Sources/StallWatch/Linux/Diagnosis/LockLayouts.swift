import LinuxSupport
import StackCapture

/// The operations of futex(2), and the futex words that contain an owner.
enum Futex {
    /// Returns whether the operation is FUTEX_WAIT or FUTEX_WAIT_BITSET.
    static func isWait(_ argument: UInt64) -> Bool { [0, 9].contains(command(argument)) }

    /// Returns whether the operation is FUTEX_LOCK_PI or FUTEX_LOCK_PI2: the futex word contains the owner.
    static func hasPriorityInheritance(_ argument: UInt64) -> Bool { [6, 13].contains(command(argument)) }

    /// Returns whether the operation is FUTEX_WAIT, not FUTEX_WAIT_BITSET.
    static func isPlainWait(_ argument: UInt64) -> Bool { command(argument) == 0 }

    /// Returns whether other processes may wake the waiter: without FUTEX_PRIVATE_FLAG.
    static func isShared(_ argument: UInt64) -> Bool { argument & 128 == 0 }

    /// Returns the time limit of a FUTEX_WAIT_BITSET, which is an absolute time (futex(2)); `nil` if it cannot be read.
    static func limit(of call: SystemCall, _ memory: any MemoryReading) -> TimeLimit? {
        guard command(call.argument(1)) == 9, let time = memory.words(at: call.argument(3), count: 2),
            time[0] < 1 << 33, time[1] < 1_000_000_000
        else { return nil }
        return TimeLimit(
            isRealtime: call.argument(1) & 256 != 0, nanoseconds: time[0] * 1_000_000_000 + time[1])
    }

    /// Returns the operation without FUTEX_PRIVATE_FLAG (128) and FUTEX_CLOCK_REALTIME (256).
    private static func command(_ argument: UInt64) -> UInt64 { argument & 0xffff_ffff & ~(128 | 256) }

    /// A futex word with an owner: FUTEX_TID_MASK, FUTEX_OWNER_DIED and FUTEX_WAITERS of linux/futex.h.
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

/// The fields of glibc's struct __pthread_mutex_s that determine the owner.
struct PthreadMutex {
    /// The plausible values of `__nusers`: the owner, and each thread that has released it to wait for a condition.
    private static let users: ClosedRange<Int32> = 1...100_000

    private let lock, owner, users, kind: Int32
    private let count: UInt32

    init?(at address: UInt64, _ memory: any MemoryReading) {
        guard let fields = memory.integers(at: address, count: 5) else { return nil }
        (lock, count, owner, users, kind) = (fields[0], UInt32(bitPattern: fields[1]), fields[2], fields[3], fields[4])
    }

    /// Whether threads of other processes may lock it: its type says so, as that of each robust one does.
    var mayBeShared: Bool { kind & (Self.robust | 128) != 0 }
    private static let robust: Int32 = 16
    /// PTHREAD_PRIO_PROTECT.
    private static let hasCeiling: Int32 = 64

    /// The owner of a mutex with waiting threads, if all fields agree: glibc sets `__owner` after it locks the mutex
    /// and clears it before it unlocks it, and the futex operation identifies mutexes with priority inheritance.
    var ownerWhileWaitedFor: Int32? {
        let typeMask: Int32 = 3
        // Robust, with a ceiling, process-shared and the two elision bits; other bits mean a PI mutex, or no mutex.
        guard kind & ~(typeMask | Self.robust | Self.hasCeiling | 128 | 256 | 512) == 0, owner > 0, Self.users ~= users
        else { return nil }
        let isRecursive = kind & typeMask == 1
        if kind & Self.robust != 0 {
            let word = Futex.Word(lock)
            let isOwned = word.hasWaiters && !word.ownerDied && word.owner == owner
            return isOwned && kind & Self.hasCeiling == 0 ? owner : nil
        }
        // The priority ceiling is above the lowest 19 bits, and not 0 (PTHREAD_MUTEX_PRIO_CEILING_SHIFT, pthreadP.h).
        let word = kind & Self.hasCeiling == 0 ? lock : lock >> 19 > 0 ? lock & 0x7_ffff : 0
        // 2: locked, with waiting threads (lowlevellock.h). Only a recursive mutex has a count.
        return word == 2 && (isRecursive ? count >= 1 : count == 0) ? owner : nil
    }
}

/// glibc's struct __pthread_rwlock_arch_t.
enum PthreadReadWriteLock {
    /// Returns the writer that has the lock: PTHREAD_RWLOCK_WRPHASE (1) and _WRLOCKED (2) are set (pthread_rwlock_common.c).
    static func writer(ofLockAt address: UInt64, _ memory: any MemoryReading) -> Int32? {
        guard address % 4 == 0, let fields = memory.integers(at: address, count: 13) else { return nil }
        // __readers at 0, __cur_writer at 24, __flags at 48 (PTHREAD_RWLOCK_PREFER_…: 0 to 2).
        let (readers, writer, flags) = (fields[0], fields[6], UInt32(bitPattern: fields[12]))
        return readers & 3 == 3 && writer > 0 && flags <= 2 ? writer : nil
    }

    /// Returns how many readers have the lock, for which a writer waits: of the two bits only _WRLOCKED is set then, and the
    /// count begins at PTHREAD_RWLOCK_READER_SHIFT (3).
    static func readers(ofLockAt address: UInt64, _ memory: any MemoryReading) -> Int? {
        guard address % 4 == 0, let fields = memory.integers(at: address, count: 13), fields[6] == 0,
            UInt32(bitPattern: fields[12]) <= 2, fields[0] & 3 == 2
        else { return nil }
        let count = Int(UInt32(bitPattern: fields[0]) >> 3)
        return plausibleReaders ~= count ? count : nil
    }

    private static let plausibleReaders = 1...100_000
}

/// glibc's struct new_sem (64 bits, nptl/sem_waitcommon.c): value and waiters in a word, a flag for private futexes.
enum PosixSemaphore {
    /// The plausible numbers of waiting threads.
    private static let waiters: ClosedRange<Int32> = 1...100_000

    /// Returns whether the memory looks like a semaphore with waiting threads: its value is 0 then.
    static func isWaitedFor(at address: UInt64, _ expected: UInt64, _ memory: any MemoryReading) -> Bool {
        guard expected == 0, address % 8 == 0, let value = memory.integer(at: address),
            let waiting = memory.integer(at: address &+ 4), let flag = memory.integer(at: address &+ 8)
        else { return false }
        return value == 0 && waiters ~= waiting && (flag == 0 || flag == 128)
    }
}
