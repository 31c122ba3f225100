import Glibc
import StallReports

/// Detects time in which nothing in the process could run.
///
/// A pure value. A thread wakes up late because it was still working at the deadline, waited for a CPU or for its own
/// pages of memory, the host gave its CPU to another machine, or no thread of the process ran.
struct GapDetector: Equatable {
    enum Gap: Equatable {
        /// The turns are measured anew, because no thread ran.
        case held(SuppressionReason)
        /// The host delayed some turns and not others, so all of them get a grace period to end.
        case stolen
    }

    /// The clocks at one moment, in nanoseconds.
    struct Reading: Equatable {
        var monotonic: UInt64
        /// The monotonic clock plus the time for which the machine has been suspended.
        var boot: UInt64
        /// The largest amount by which `boot` may be too late.
        var uncertainty: UInt64 = 0
        /// The total time that the watchdog has run on a CPU, waited for one, or waited for a capture.
        var occupied: UInt64
        /// The process's CPU time, set only if the kernel has no schedstat.
        var processTime: UInt64?
        /// The watchdog's page faults that went to a disk, in all.
        var majorFaults: UInt64 = 0
    }

    private let processors: UInt64

    init(processors: Int = sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
        self.processors = UInt64(max(processors, 1))
    }

    /// The largest lateness or suspension that is normal, in nanoseconds: timer slack, a page fault, an interrupt.
    static let tolerance: UInt64 = 50_000_000

    /// The longest time that one page fault of the watchdog explains, in nanoseconds.
    ///
    /// That of a read from a busy disk: the kernel counts faults, and not their time. A process that was stopped for longer
    /// has faults afterwards, too.
    static let faultTime: UInt64 = 100_000_000

    /// The part of its lateness in which a process must have run not to count as stopped: a tenth.
    private static let leastShare: UInt64 = 10

    /// Returns how long turns that the host delayed may go on before they are inspected, in nanoseconds: a fifth of the
    /// shortest threshold, because a longer period would hide stalls on hosts that steal CPU all the time.
    static func gracePeriod(threshold: UInt64) -> UInt64 { min(threshold / 5, tolerance) }

    private var last: Reading?
    /// Whether the last wake-up gave a grace period; there are never two in a row.
    private var hadGracePeriod = false
    private var deadline = UInt64.max

    /// Begins a sleep of the watchdog until `deadline`, in monotonic nanoseconds; `.max` for no deadline.
    ///
    /// `reading` has the clocks at the last wake-up. All work since then excuses as much lateness, even work before the
    /// deadline, and so does what was unread until then (``UnreadTime/limit``). Without captures that is some 100 µs and
    /// up to 10 ms, while a gap is over 50 ms.
    ///
    /// If no stop can have come since the wake-up, the sleep begins at `ownUntil`. How late the watchdog is by then
    /// does not count: it may have waited for a lock that the stalled thread holds.
    mutating func sleep(at reading: Reading, ownUntil: UInt64? = nil, until deadline: UInt64) {
        var reading = reading
        if let time = ownUntil {
            reading.boot &+= time &- reading.monotonic
            reading.monotonic = time
        }
        last = reading
        // What was due before is due at once: the time until then was looked at already.
        self.deadline = max(deadline, reading.monotonic)
    }

    /// Ends the sleep; returns the gap if there was one.
    ///
    /// `firstBegin`, when the earliest turn in progress began, is the end of a sleep without a deadline. `stolen`
    /// returns how long the host has kept a CPU from running during the sleep, in nanoseconds, or slightly more. It is
    /// called only if the watchdog is late.
    mutating func wake(at reading: Reading, firstBegin: @autoclosure () -> UInt64?, stolen: () -> UInt64) -> Gap? {
        guard let last else { return nil }
        let isRested = hadGracePeriod
        hadGracePeriod = false
        self.last = nil
        let suspended = (reading.boot &- reading.monotonic) &- (last.boot &- last.monotonic)
        // The clocks are read one after the other, so the difference may be off: too large by this reading's uncertainty, or
        // too small by the last one's.
        if suspended > Self.tolerance &+ reading.uncertainty, suspended < UInt64.max / 2 { return .held(.suspended) }
        // A sleep without a deadline ends when the first turn begins, unless something else woke the watchdog.
        let due = deadline != .max ? deadline : firstBegin().flatMap { $0 >= last.monotonic ? $0 : nil } ?? .max
        guard due != .max, reading.monotonic > due else { return nil }
        let late = reading.monotonic - due
        if hasRun(since: last, until: reading, planned: due - last.monotonic, late: late) { return nil }
        let faulted = (reading.majorFaults &- last.majorFaults) &* Self.faultTime
        let unexplained = late - min((reading.occupied &- last.occupied) &+ faulted, late)
        guard unexplained > Self.tolerance else { return nil }
        guard unexplained - min(stolen(), unexplained) <= Self.tolerance else { return .held(.processStopped) }
        hadGracePeriod = !isRested
        return isRested ? nil : .stolen
    }

    /// Whether the process has provably run while the watchdog was late, by more than all CPUs could have before; for a
    /// system that does not show the watchdog's own waits for a CPU.
    private func hasRun(since last: Reading, until reading: Reading, planned: UInt64, late: UInt64) -> Bool {
        guard let before = last.processTime, let now = reading.processTime, now > before else { return false }
        return now - before > planned &* processors &+ late / Self.leastShare
    }
}

/// Tells that the process was not stopped while the watchdog was awake for long, as behind a lock or for memory.
///
/// A pure value. SIGSTOP, the freezer of cgroup v2 and a debugger wake each thread of a process, which costs it CPU
/// time, even if it has nothing to do. So one thread that has not run shows that there was no stop.
struct RestingThreads {
    private var times: [(thread: Int32, ran: UInt64)] = []

    /// Begins with these threads; `cpuTime` returns how long one has been on a CPU, in nanoseconds, exactly.
    mutating func begin(_ threads: some Sequence<Int32>, cpuTime: (Int32) -> UInt64?) {
        // Without an allocation at each wake-up.
        times.removeAll(keepingCapacity: true)
        for thread in threads {
            if let ran = cpuTime(thread) { times.append((thread, ran)) }
        }
    }

    /// Returns whether one of the threads has not run since.
    func haveRested(cpuTime: (Int32) -> UInt64?) -> Bool { times.contains { cpuTime($0.thread) == $0.ran } }
}

/// Tells when the watchdog reads how long its own thread has run and waited for a CPU: the reading would be a quarter of a
/// wake-up's CPU time.
///
/// A pure value. That time has grown by no more than the time in which the thread did not sleep as planned. So the value
/// for a sleep, read at its end, is too large by ``limit`` at most.
struct UnreadTime: Equatable {
    /// The largest time that stays unread, in nanoseconds: a fifth of the lateness that is normal.
    static let limit = GapDetector.tolerance / 5

    private var unread: UInt64 = 0
    private var deadline = UInt64.max

    /// Begins a sleep of the watchdog, awake since a moment, until `deadline`; `.max` for none.
    mutating func sleep(awakeSince wakeUp: UInt64, at time: UInt64, until deadline: UInt64) {
        unread += time - min(wakeUp, time)
        self.deadline = deadline
    }

    /// Ends the sleep, and returns whether the time is to be read.
    ///
    /// It always is before the deadline, or without one: it is not known then since when the thread has waited for a CPU.
    mutating func wake(at time: UInt64) -> Bool {
        if time >= deadline { unread += time - deadline }
        guard time < deadline || unread > Self.limit else { return false }
        unread = 0
        return true
    }
}
