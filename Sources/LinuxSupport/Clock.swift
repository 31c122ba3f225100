import Glibc

/// Returns the nanoseconds of CLOCK_MONOTONIC, which stops in suspension; no system call (vdso(7)).
package func monotonicNow() -> UInt64 { now(CLOCK_MONOTONIC) ?? 0 }

/// Returns the nanoseconds of CLOCK_BOOTTIME, which also runs while the machine is suspended.
package func bootTimeNow() -> UInt64 { now(CLOCK_BOOTTIME) ?? 0 }

/// CLOCK_MONOTONIC and CLOCK_BOOTTIME of one moment, in nanoseconds.
package struct ClockPair: Equatable, Sendable {
    package var monotonic: UInt64
    package var boot: UInt64
    /// The largest amount by which ``boot`` may be too late, because the thread lost its CPU between the two readings.
    package var uncertainty: UInt64

    /// The uncertainty that is good enough, in nanoseconds: two readings in a row take less than one microsecond.
    static let goodUncertainty: UInt64 = 1_000_000
    static let maximumAttempts = 4

    /// Reads the boot clock between two readings of the monotonic one, and again while these are too far apart.
    ///
    /// The moment is that of the first reading, so that a thread that loses its CPU later does not seem to have come late.
    package init(monotonic: () -> UInt64 = monotonicNow, boot: () -> UInt64 = bootTimeNow) {
        let first = monotonic()
        (self.monotonic, self.boot, uncertainty) = (first, first, .max)
        var before = first
        for _ in 0..<Self.maximumAttempts where uncertainty > Self.goodUncertainty {
            let between = boot()
            let after = monotonic()
            if after &- before < uncertainty {
                (self.boot, uncertainty) = (first &+ (between &- before), after &- before)
            }
            before = after
        }
    }
}

/// Returns a time of CLOCK_MONOTONIC in nanoseconds of CLOCK_BOOTTIME; too late by suspensions since then.
package func bootTime(at time: UInt64) -> UInt64 {
    let now = ClockPair()
    return now.boot - (now.monotonic - min(time, now.monotonic))
}

/// Returns the number of page faults of the calling thread that went to a disk.
package func threadMajorFaults() -> UInt64 {
    var usage = rusage()
    // RUSAGE_THREAD.
    return getrusage(1, &usage) == 0 ? UInt64(usage.ru_majflt) : 0
}

/// Returns the nanoseconds for which the threads of this process have been on a CPU.
package func processTimeNow() -> UInt64 { now(CLOCK_PROCESS_CPUTIME_ID) ?? 0 }

/// Returns the nanoseconds for which the calling thread has been on a CPU.
package func threadTimeNow() -> UInt64 { now(CLOCK_THREAD_CPUTIME_ID) ?? 0 }

/// Returns the nanoseconds of the wall clock since 1970.
package func wallClockNow() -> UInt64 { now(CLOCK_REALTIME) ?? 0 }

/// Reads a clock; `nil` for an unknown one: those above have existed since Linux 2.6.39.
private func now(_ clock: clockid_t) -> UInt64? {
    var time = timespec()
    return clock_gettime(clock, &time) == 0 ? time.nanoseconds : nil
}

extension timespec {
    /// The time in nanoseconds; 0 for a negative one, such as libfaketime(1) shows before 1970.
    var nanoseconds: UInt64 {
        tv_sec < 0 ? 0 : UInt64(tv_sec) &* 1_000_000_000 &+ UInt64(bitPattern: Int64(tv_nsec))
    }
}

/// Returns the exact time of a thread on a CPU, in nanoseconds; `nil` if this process has no such thread.
///
/// Takes a system call. pthread_getcpuclockid(3) encodes it alike (linux/posix-timers_types.h), but needs a pthread_t.
package func cpuTime(of thread: Int32) -> UInt64? {
    /// The largest id of a thread (PID_MAX_LIMIT): beyond it the encoding would overflow.
    let maximumThread: Int32 = 1 << 22
    // CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED. The clock of thread 0 is that of the calling thread.
    let exactClockOfThread: Int32 = 4 | 2
    guard (1...maximumThread).contains(thread) else { return nil }
    return now(clockid_t(~thread << 3 | exactClockOfThread))
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
