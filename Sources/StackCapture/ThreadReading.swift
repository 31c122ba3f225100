/// A system call that a thread waits in.
package struct SystemCall: Equatable, Sendable {
    package var number: Int
    package var arguments: [UInt64]
    package var stackPointer: UInt64
    /// The address after the instruction that made the call.
    package var programCounter: UInt64

    package init(number: Int, arguments: [UInt64], stackPointer: UInt64, programCounter: UInt64) {
        self.number = number
        self.arguments = arguments
        self.stackPointer = stackPointer
        self.programCounter = programCounter
    }

    /// Returns one argument, or 0 if the index is out of range.
    package func argument(_ index: Int) -> UInt64 {
        arguments.indices.contains(index) ? arguments[index] : 0
    }
}

/// A thread's activity according to /proc/<pid>/syscall, or without that file to its state.
package enum ThreadActivity: Equatable, Sendable {
    /// On a CPU or waiting for one.
    case running
    /// Waiting outside of system calls, for a page of memory.
    case faulting
    case waiting(SystemCall)
    /// Waiting for something that the system does not show.
    case blocked

    /// The system call that the thread waits in; `nil` if it waits in none, or in one that is not known.
    package var call: SystemCall? {
        if case .waiting(let call) = self { return call }
        return nil
    }
}

/// The kernel's values for one thread at one moment; times and counts are totals since the thread's start.
package struct ThreadReading: Equatable, Sendable {
    /// The time of the reading, in monotonic nanoseconds.
    package var time: UInt64
    /// The time on a CPU in nanoseconds, from the thread's CPU clock; exact even while the thread runs.
    package var onCPU: UInt64
    /// The time runnable without a CPU, in nanoseconds (schedstat), which grows when a wait for a CPU ends.
    package var runQueue: UInt64 = 0
    /// How often the thread has got a CPU (schedstat), counted before it runs; 0 if the kernel does not count.
    package var slices: UInt64 = 0
    /// The state letter of proc(5): R, S, D, T, t, X, I; 0 if the system does not show it.
    package var state: UInt8 = 0
    /// Page faults without disk access.
    package var minorFaults: UInt64 = 0
    /// Page faults with disk access.
    package var majorFaults: UInt64 = 0
    /// CPU time in user mode, in clock ticks (10 ms); use only its ratio to ``systemTicks``.
    package var userTicks: UInt64 = 0
    /// CPU time in the kernel, in clock ticks (10 ms).
    package var systemTicks: UInt64 = 0
    /// The nice value; `nil` if the system does not show it.
    package var nice: Int32?
    /// The number of times that the thread gave up its CPU to wait; `nil` if the system does not show it.
    package var voluntarySwitches: UInt64?
    /// The number of times that the scheduler took the CPU from the thread; `nil` if the system does not show it.
    package var involuntarySwitches: UInt64?
    /// The activity in /proc/<pid>/syscall, never `.blocked`; `nil` if the system does not show it.
    package var shown: ThreadActivity?
    /// The kernel function that the thread waits in; `nil` if it does not wait, or the kernel does not report it.
    package var waitChannel: String?
    /// The loop's total wait for events in nanoseconds, set by its diagnosis; 0 if the loop does not report waits.
    package var loopWaited: UInt64 = 0
    /// The total time in nanoseconds for which CPU quotas throttled the thread's cgroups, set by the loop's diagnosis.
    package var throttled: UInt64 = 0

    /// Whether the kernel shows ``runQueue``; if not, it is 0.
    package var showsRunQueue: Bool { slices > 0 }
    package var showsSystemCall: Bool { shown != nil }

    /// The time that the thread has used or wanted to use a CPU, in nanoseconds.
    package var used: UInt64 { onCPU &+ runQueue }

    package var isRunnable: Bool { state == UInt8(ascii: "R") }

    /// A number that grows whenever the thread runs and waits again.
    package var runs: UInt64 { voluntarySwitches ?? onCPU }

    /// Whether the thread has had a CPU or waited for one since an earlier reading, and for nothing else.
    ///
    /// The time of a wait for a CPU that goes on is in no counter: a quota's takes most of 100 ms.
    package func neverWaited(since earlier: ThreadReading) -> Bool {
        guard isRunnable, earlier.isRunnable, let voluntarySwitches else { return false }
        return voluntarySwitches == earlier.voluntarySwitches
    }

    package func hasRun(since earlier: ThreadReading) -> Bool {
        slices == 0 ? runs != earlier.runs : slices != earlier.slices
    }

    /// Returns whether the thread wants a CPU and has waited for one, or has hardly run, since an earlier reading.
    ///
    /// Stopping such a thread gives its CPU to the others, each of which keeps it for a time slice at least (Linux 6.18,
    /// nine nice threads: 8 ms per stop). With these bounds stops hold it up for about a quarter of the time.
    package func competes(since earlier: ThreadReading) -> Bool {
        let elapsed = time &- earlier.time
        return isRunnable && ((runQueue &- earlier.runQueue) > elapsed / 4 || (onCPU &- earlier.onCPU) < elapsed / 8)
    }
}

/// The place where a thread waits in epoll_wait(2) without a timeout, as SwiftNIO's loops do for all of their work.
package struct EpollWait: Sendable, Equatable {
    package var descriptor: Int32
    /// The thread's stack pointer and program counter: they tell a wait apart from others of the same thread.
    package var stackPointer: UInt64
    package var programCounter: UInt64

    #if arch(x86_64)
        /// The numbers of epoll_wait(2) and epoll_pwait(2) (asm/unistd_64.h).
        private static let calls: Set<Int> = [232, 281]
    #else
        /// The number of epoll_pwait(2) (asm-generic/unistd.h).
        private static let calls: Set<Int> = [22]
    #endif
}

extension EpollWait {
    /// `nil` if the call is not such a wait.
    package init?(_ call: SystemCall) {
        // The timeout is an int: of its register, only the lower half counts.
        guard Self.calls.contains(call.number), UInt32(truncatingIfNeeded: call.argument(3)) == UInt32.max,
            let descriptor = Int32(exactly: call.argument(0))
        else { return nil }
        self.init(
            descriptor: descriptor, stackPointer: call.stackPointer, programCounter: call.programCounter)
    }
}
