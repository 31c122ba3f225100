import Glibc

/// Nanoseconds of CLOCK_MONOTONIC, which stands still while the machine is suspended.
///
/// Not a system call (vdso(7)).
func monotonicNow() -> UInt64 {
    var time = timespec()
    // Fails only for a clock that the kernel does not have; this one has been there since Linux 2.6.
    clock_gettime(CLOCK_MONOTONIC, &time)
    // Neither is ever negative: it counts from the machine's start.
    return UInt64(bitPattern: Int64(time.tv_sec)) &* 1_000_000_000 &+ UInt64(bitPattern: Int64(time.tv_nsec))
}

/// Nanoseconds of CLOCK_BOOTTIME, which also runs while the machine is suspended.
func bootTimeNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Nanoseconds of the wall clock since 1970.
func wallClockNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}
