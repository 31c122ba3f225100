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
    /// Whether the kernel shows ``runQueue``; if not, it is 0.
    var showsRunQueue = true
    /// The number of times that the thread has got a CPU (the third field of schedstat); 0 if the kernel does not count.
    ///
    /// It is counted before the thread runs.
    var slices: UInt64 = 0
    /// The state letter of proc(5): R, S, D, T, t, Z, X, I; 0 if the system does not show it.
    var state: UInt8
    /// Page faults without disk access.
    var minorFaults: UInt64
    /// Page faults with disk access.
    var majorFaults: UInt64
    /// CPU time in user mode, in clock ticks (10 ms); use only its ratio to ``systemTicks``.
    var userTicks: UInt64
    /// CPU time in the kernel, in clock ticks (10 ms).
    var systemTicks: UInt64
    /// The number of times that the thread gave up its CPU to wait; `nil` if the system does not show it.
    var voluntarySwitches: UInt64?
    /// The number of times that the scheduler took the CPU from the thread; `nil` if the system does not show it.
    var involuntarySwitches: UInt64?
    /// The thread's activity.
    var activity: ThreadActivity
    /// Whether the system shows the call that the thread waits in; if not, ``activity`` is `.blocked` or `.running`.
    var showsSystemCall = true
    /// The kernel function that the thread waits in; `nil` if the thread does not wait or the kernel does not report
    /// it.
    var waitChannel: String?
    /// The processor that the thread last ran on; `nil` if the kernel does not report it.
    var processor: Int32?
    /// The total time that the thread's loop has waited for events, in nanoseconds; 0 if the loop does not report
    /// waits.
    var loopWaited: UInt64 = 0

    /// The time that the thread has used or wanted to use a CPU, in nanoseconds.
    var used: UInt64 { onCPU &+ runQueue }

    /// Whether the thread is on a CPU or waits for one.
    var isRunnable: Bool { state == UInt8(ascii: "R") }

    /// A number that grows whenever the thread runs and waits again.
    var runs: UInt64 { voluntarySwitches ?? onCPU }

    /// Whether the thread may have run since an earlier reading.
    func hasRun(since earlier: ThreadReading) -> Bool {
        slices == 0 ? runs != earlier.runs : slices != earlier.slices
    }
}

extension ThreadReading {
    /// Whether the thread is neither dead nor a zombie.
    ///
    /// A main thread stays as a zombie after pthread_exit(3).
    var isAlive: Bool { state != UInt8(ascii: "Z") && state != UInt8(ascii: "X") }
}
