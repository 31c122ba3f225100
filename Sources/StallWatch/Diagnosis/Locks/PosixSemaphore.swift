import LinuxSupport

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
