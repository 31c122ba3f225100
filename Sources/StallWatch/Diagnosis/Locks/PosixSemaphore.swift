import LinuxSupport

/// glibc's struct new_sem on 64-bit machines (nptl/sem_waitcommon.c).
///
/// It has the value and the number of waiters in one word, followed by a futex flag for private semaphores.
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
