import LinuxSupport

/// The fields of glibc's struct __pthread_rwlock_arch_t that determine the writer.
struct PthreadReadWriteLock {
    private let readers: UInt32
    private let writer: Int32
    private let flags: UInt32

    init?(at address: UInt64, _ memory: any MemoryReading) {
        guard address % 4 == 0, let fields = memory.integers(at: address, count: 13) else { return nil }
        // __readers at 0, __cur_writer at 24, __flags at 48 (PTHREAD_RWLOCK_PREFER_…: 0 to 2).
        (readers, writer, flags) = (UInt32(bitPattern: fields[0]), fields[6], UInt32(bitPattern: fields[12]))
    }

    /// The writer that has the lock.
    ///
    /// A writer has the lock if PTHREAD_RWLOCK_WRPHASE (1) and PTHREAD_RWLOCK_WRLOCKED (2) are both set (pthread_rwlock_common.c).
    var writerWhileHeld: Int32? {
        readers & 3 == 3 && writer > 0 && flags <= 2 ? writer : nil
    }
}
