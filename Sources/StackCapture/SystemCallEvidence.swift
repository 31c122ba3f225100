import LinuxSupport

/// Whether a running thread is in a system call: where its last clock tick went (without one since, it is where it
/// was).
struct SystemCallEvidence: Equatable {
    private var time: TickedCPUTime
    private var turn: UInt64?
    /// Whether the last tick was in the kernel; `nil` if none was seen yet.
    private var isInKernel: Bool?

    /// Creates the evidence from the first reading of a thread; `turn` is `nil` if it was read for a capture.
    init(_ time: TickedCPUTime, turn: UInt64?) {
        self.time = time
        self.turn = turn
    }

    /// Takes in a later reading; what went before a new turn shows nothing.
    mutating func note(_ latest: TickedCPUTime, turn latestTurn: UInt64) {
        guard latestTurn == turn else { return self = SystemCallEvidence(latest, turn: latestTurn) }
        note(latest)
    }

    /// Takes in a later reading of the same turn.
    mutating func note(_ latest: TickedCPUTime) {
        if latest.system > time.system {
            isInKernel = true
        } else if latest.user > time.user {
            isInKernel = false
        }
        time = latest
    }

    /// Notes that the thread was seen outside of system calls.
    mutating func noteUserMode() { isInKernel = false }

    var mayBeInKernel: Bool { isInKernel != false }
}

/// A thread's CPU time as the kernel's clock ticks count it, in nanoseconds.
///
/// Each tick counts wholly as user or as system time, as the thread was at that moment. The times in `/proc` do not show
/// this: there the kernel divides the exact CPU time in proportion to all earlier ticks (`cputime_adjust` in
/// kernel/sched/cputime.c), so user time grows at the beginning of a system call, too.
package struct TickedCPUTime: Equatable, Sendable {
    package var user: UInt64
    package var system: UInt64
}

extension TickedCPUTime {
    /// Reads a thread's CPU time by three system calls; `nil` if it has ended or the system lacks these clocks.
    package init?(thread: Int32) {
        // A tick between two readings would count for the wrong one; there is none between the next two.
        for _ in 0..<2 {
            guard let before = ThreadClock.userTicks.nanoseconds(of: thread),
                let both = ThreadClock.ticks.nanoseconds(of: thread),
                let after = ThreadClock.userTicks.nanoseconds(of: thread)
            else { return nil }
            if before == after {
                self.init(user: after, system: both &- after)
                return
            }
        }
        return nil
    }
}
