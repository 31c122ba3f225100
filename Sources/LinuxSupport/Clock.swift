import Glibc

/// Nanoseconds of CLOCK_MONOTONIC, which stands still while the machine is suspended.
///
/// Not a system call (vdso(7)).
package func monotonicNow() -> UInt64 {
    var time = timespec()
    // Fails only for a clock that the kernel does not have; this one has been there since Linux 2.6.
    clock_gettime(CLOCK_MONOTONIC, &time)
    // Neither is ever negative: it counts from the machine's start.
    return UInt64(bitPattern: Int64(time.tv_sec)) &* 1_000_000_000 &+ UInt64(bitPattern: Int64(time.tv_nsec))
}

/// Nanoseconds of CLOCK_BOOTTIME, which also runs while the machine is suspended.
package func bootTimeNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Nanoseconds of the wall clock since 1970.
package func wallClockNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// A duration in nanoseconds: 0 for a negative one, 292 years at most.
package func nanoseconds(_ duration: Duration) -> UInt64 {
    // Divided as two words: the standard library's parts of a duration are generic code of 128 bits.
    let (high, low) = (duration.attoseconds >> 64, UInt64(truncatingIfNeeded: duration.attoseconds))
    guard high >= 0 else { return 0 }
    // With a larger one the quotient would be past Int64.max.
    guard high < 500_000_000 else { return UInt64(Int64.max) }
    return UInt64(1_000_000_000).dividingFullWidth((UInt64(truncatingIfNeeded: high), low)).quotient
}
