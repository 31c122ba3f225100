import Glibc

/// Returns the nanoseconds of CLOCK_MONOTONIC, which stops while the machine is suspended.
///
/// Makes no system call (vdso(7)).
package func monotonicNow() -> UInt64 {
    var time = timespec()
    // Fails only for an unknown clock; this one has existed since Linux 2.6.
    clock_gettime(CLOCK_MONOTONIC, &time)
    // Neither value is negative: the clock counts from the machine's start.
    return UInt64(bitPattern: Int64(time.tv_sec)) &* 1_000_000_000 &+ UInt64(bitPattern: Int64(time.tv_nsec))
}

/// Returns the nanoseconds of CLOCK_BOOTTIME, which also runs while the machine is suspended.
package func bootTimeNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Returns the nanoseconds of the wall clock since 1970.
package func wallClockNow() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
}

/// Sleeps for half a millisecond: the interval of a wait that polls.
package func nap() {
    usleep(500)
}

/// Returns a duration in whole nanoseconds, rounded down: 0 for a negative one, at most 292 years.
package func nanoseconds(_ duration: Duration) -> UInt64 {
    // Divides two words, because the standard library splits a duration with generic code of 128 bits.
    let (high, low) = (duration.attoseconds >> 64, UInt64(truncatingIfNeeded: duration.attoseconds))
    guard high >= 0 else { return 0 }
    // For a larger one the quotient would exceed Int64.max.
    guard high < 500_000_000 else { return UInt64(Int64.max) }
    return UInt64(1_000_000_000).dividingFullWidth((UInt64(truncatingIfNeeded: high), low)).quotient
}
