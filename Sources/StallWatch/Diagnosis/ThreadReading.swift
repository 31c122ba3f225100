import LinuxSupport

/// The kernel's values for one thread at one moment.
///
/// Times and counts are totals since the thread's start.
struct ThreadReading: Equatable, Sendable {
    /// The time of the reading, in monotonic nanoseconds.
    var time: UInt64
    /// The time on a CPU in nanoseconds, from the thread's CPU clock; exact even while the thread runs.
    var onCPU: UInt64
    /// The time runnable without a CPU, in nanoseconds (the second field of schedstat).
    ///
    /// It grows when a wait for a CPU ends, not during the wait.
    var runQueue: UInt64
    /// The state letter of proc(5): R, S, D, T, t, Z, X, I.
    var state: UInt8
    /// Page faults without disk access.
    var minorFaults: UInt64
    /// Page faults with disk access.
    var majorFaults: UInt64
    /// CPU time in user mode, in clock ticks (10 ms); use only its ratio to ``systemTicks``.
    var userTicks: UInt64
    /// CPU time in the kernel, in clock ticks (10 ms).
    var systemTicks: UInt64
    /// The number of times that the thread gave up its CPU to wait.
    var voluntarySwitches: UInt64
    /// The number of times that the scheduler took the CPU from the thread.
    var involuntarySwitches: UInt64
    /// The thread's activity.
    var activity: ThreadActivity
    /// The kernel function that the thread waits in; `nil` if the thread does not wait or the kernel does not report
    /// it.
    var waitChannel: String?
    /// The processor that the thread last ran on; `nil` if the kernel does not report it.
    var processor: Int32?
    /// The total time that the thread's loop has waited for events, in nanoseconds; 0 if the loop does not report
    /// waits.
    var loopWaited: UInt64 = 0

    /// Whether the thread is on a CPU or waits for one.
    var isRunnable: Bool { state == UInt8(ascii: "R") }
}

/// A thread's activity according to /proc/<pid>/syscall.
enum ThreadActivity: Equatable, Sendable {
    /// On a CPU or waiting for one.
    case running
    /// Waiting outside of system calls, for a page of memory.
    case faulting
    /// Waiting in a system call.
    case waiting(SystemCall)
}

/// A system call that a thread waits in.
struct SystemCall: Equatable, Sendable {
    var number: Int
    /// All six argument registers, whether the call uses them or not.
    var arguments: [UInt64]
    var stackPointer: UInt64
    /// The address after the instruction that made the call.
    var programCounter: UInt64

    /// Returns one argument, or 0 if the index is out of range.
    func argument(_ index: Int) -> UInt64 {
        arguments.indices.contains(index) ? arguments[index] : 0
    }
}

extension ThreadActivity {
    /// Parses /proc/<pid>/syscall (proc(5)): `running`, `-1 sp pc`, or the number, six arguments, sp and pc.
    ///
    /// Fails for any other text.
    init?(_ cursor: ByteCursor) {
        var cursor = cursor
        guard let first = cursor.next else { return nil }
        if first == UInt8(ascii: "r") {
            self = .running
            return
        }
        if first == UInt8(ascii: "-") {
            self = .faulting
            return
        }
        guard let number = cursor.number() else { return nil }
        var values: [UInt64] = []
        while values.count < 8, let value = cursor.number() { values.append(value) }
        guard values.count == 8 else { return nil }
        self = .waiting(
            SystemCall(
                number: Int(truncatingIfNeeded: number), arguments: Array(values.prefix(6)), stackPointer: values[6],
                programCounter: values[7]
            )
        )
    }
}

extension ThreadActivity {
    /// Returns `.running` instead of `.faulting` if the kernel's wait function contradicts a wait for a page.
    ///
    /// A thread outside of system calls may also be stopped by a tracer, such as another monitor's capture; it
    /// continues at once. A thread that has left the wait a moment later has not waited long.
    func confirmed(by waitChannel: String?) -> ThreadActivity {
        guard self == .faulting, waitChannel == nil || waitChannel == "ptrace_stop" else { return self }
        return .running
    }
}

/// Fields 3, 10, 12, 14, 15 and 39 of /proc/<pid>/stat (proc(5)).
struct ThreadStat: Equatable {
    var state: UInt8
    var minorFaults: UInt64
    var majorFaults: UInt64
    var userTicks: UInt64
    var systemTicks: UInt64
    var processor: Int32?

    init?(_ cursor: ByteCursor) {
        var cursor = cursor
        // The command name is in parentheses and may contain any character: count fields from the last parenthesis.
        guard cursor.skip(pastLast: UInt8(ascii: ")")), let state = cursor.next else { return nil }
        self.state = state
        cursor.skipWords(7)
        guard let minor = cursor.number() else { return nil }
        cursor.skipWords(1)
        guard let major = cursor.number() else { return nil }
        cursor.skipWords(1)
        guard let user = cursor.number(), let system = cursor.number() else { return nil }
        (minorFaults, majorFaults, userTicks, systemTicks) = (minor, major, user, system)
        cursor.skipWords(23)
        processor = cursor.number().flatMap(Int32.init(exactly:))
    }
}

extension ThreadReading {
    /// Whether the thread is neither dead nor a zombie.
    ///
    /// A main thread stays as a zombie after pthread_exit(3).
    var isAlive: Bool { state != UInt8(ascii: "Z") && state != UInt8(ascii: "X") }
}
