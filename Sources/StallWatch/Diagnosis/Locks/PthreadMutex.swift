import LinuxSupport

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

    /// The owner of a mutex with waiting threads, if all fields agree.
    ///
    /// glibc sets `__owner` after it locks the mutex and clears it before it unlocks it, so a thread in `__owner` has the
    /// lock. The futex operation already identifies mutexes with priority inheritance.
    var ownerWhileWaitedFor: Int32? {
        let typeMask: Int32 = 3
        let robust: Int32 = 16
        // Robust, process-shared and the two elision bits; other bits mean a PI or ceiling mutex, or no mutex.
        guard kind & ~(typeMask | robust | 128 | 256 | 512) == 0, owner > 0, Self.users ~= users else { return nil }
        let isRecursive = kind & typeMask == 1
        if kind & robust != 0 {
            let word = Futex.Word(lock)
            return word.hasWaiters && !word.ownerDied && word.owner == owner ? owner : nil
        }
        // 2: locked, with waiting threads (lowlevellock.h). Only a recursive mutex has a count.
        return lock == 2 && (isRecursive ? count >= 1 : count == 0) ? owner : nil
    }
}
