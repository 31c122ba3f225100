import LinuxSupport

/// What the kernel says of a thread at one moment.
///
/// Times and counts have run since the thread's start.
struct ThreadReading: Equatable, Sendable {
    /// When it was read, in nanoseconds of the monotonic clock.
    var time: UInt64
    /// Time on a CPU, in nanoseconds: the thread's own CPU clock, exact even while it runs.
    var onCPU: UInt64
    /// Time ready to run but without a CPU, in nanoseconds (the second field of schedstat).
    ///
    /// It grows when a wait for a CPU is over, not while it lasts.
    var runQueue: UInt64
    /// proc(5)'s letter: R, S, D, T, t, Z, X, I.
    var state: UInt8
    /// Page faults that needed no disk.
    var minorFaults: UInt64
    /// Page faults that waited for one.
    var majorFaults: UInt64
    /// CPU time in the app's own code and in the kernel, in clock ticks (10 ms): good for their ratio only.
    var userTicks: UInt64
    var systemTicks: UInt64
    /// How often the thread gave up its CPU by waiting, and how often the CPU was taken from it.
    var voluntarySwitches: UInt64
    var involuntarySwitches: UInt64
    /// What it is in.
    var activity: ThreadActivity
    /// The kernel function that it waits in; `nil` when it does not wait, or the kernel does not tell.
    var waitChannel: String?
    /// The processor that it is on, or was on last; `nil` when the kernel does not tell.
    var processor: Int32?
    /// How long its loop had waited for events, in nanoseconds; 0 for a loop that does not tell.
    var loopWaited: UInt64 = 0

    /// Whether it is on a CPU or ready to run.
    var isRunnable: Bool { state == UInt8(ascii: "R") }
}

/// What a thread is in, by /proc/…/syscall.
enum ThreadActivity: Equatable, Sendable {
    /// On a CPU or ready for one.
    case running
    /// Waiting, but in no system call: for a page of memory.
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
    /// The program counter behind the instruction that made the call.
    var programCounter: UInt64

    /// One argument; 0 for one that no call has.
    func argument(_ index: Int) -> UInt64 {
        arguments.indices.contains(index) ? arguments[index] : 0
    }
}

extension ThreadActivity {
    /// Parses /proc/<pid>/syscall (proc(5)): `running`, or `-1 sp pc`, or the number, six arguments, sp and pc.
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
    /// The same, if where the thread waits in the kernel bears it out.
    ///
    /// Outside of a system call a thread waits not only for a page, but also where a tracer has stopped it, such as the
    /// capture of another monitor: it runs on at once. One that no longer waits a moment later has not waited long.
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
        // The command's name is in parentheses and may have any character in it: count from the last one.
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
    /// Whether the thread has not ended.
    ///
    /// A main thread that has called pthread_exit(3) stays as a zombie.
    var isAlive: Bool { state != UInt8(ascii: "Z") && state != UInt8(ascii: "X") }
}
