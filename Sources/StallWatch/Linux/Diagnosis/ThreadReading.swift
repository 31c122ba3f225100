import LinuxSupport
import StallReports

/// The kernel's values for one thread at one moment; times and counts are totals since the thread's start.
struct ThreadReading: Equatable, Sendable {
    /// The time of the reading, in monotonic nanoseconds.
    var time: UInt64
    /// The time on a CPU in nanoseconds, from the thread's CPU clock; exact even while the thread runs.
    var onCPU: UInt64
    /// The time runnable without a CPU, in nanoseconds (schedstat), which grows when a wait for a CPU ends.
    var runQueue: UInt64
    /// Whether the kernel shows ``runQueue``; if not, it is 0.
    var showsRunQueue = true
    /// How often the thread has got a CPU (schedstat), counted before it runs; 0 if the kernel does not count.
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
    /// The nice value; `nil` if the system does not show it.
    var nice: Int32?
    /// The number of times that the thread gave up its CPU to wait; `nil` if the system does not show it.
    var voluntarySwitches: UInt64?
    /// The number of times that the scheduler took the CPU from the thread; `nil` if the system does not show it.
    var involuntarySwitches: UInt64?
    var activity: ThreadActivity
    /// Whether the system shows the call that the thread waits in; if not, ``activity`` is `.blocked` or `.running`.
    var showsSystemCall = true
    /// The kernel function that the thread waits in; `nil` if the thread does not wait or the kernel does not report
    /// it.
    var waitChannel: String?
    /// The total time that the thread's loop has waited for events, in nanoseconds; 0 if the loop does not report
    /// waits.
    var loopWaited: UInt64 = 0
    /// The total time for which CPU quotas have throttled the thread's cgroups, in nanoseconds.
    var throttled: UInt64 = 0

    /// The time that the thread has used or wanted to use a CPU, in nanoseconds.
    var used: UInt64 { onCPU &+ runQueue }

    /// Whether the thread is on a CPU or waits for one.
    var isRunnable: Bool { state == UInt8(ascii: "R") }

    /// A number that grows whenever the thread runs and waits again.
    var runs: UInt64 { voluntarySwitches ?? onCPU }

    func hasRun(since earlier: ThreadReading) -> Bool {
        slices == 0 ? runs != earlier.runs : slices != earlier.slices
    }

    /// Returns whether the thread wants a CPU and has waited for one, or has hardly run, since an earlier reading.
    ///
    /// Stopping such a thread gives its CPU to the others, each of which keeps it for a time slice at least (Linux 6.18,
    /// nine nice threads: 8 ms per stop). With these bounds stops hold it up for about a quarter of the time.
    func competes(since earlier: ThreadReading) -> Bool {
        let elapsed = time &- earlier.time
        return isRunnable && ((runQueue &- earlier.runQueue) > elapsed / 4 || (onCPU &- earlier.onCPU) < elapsed / 8)
    }

    /// Whether the thread is neither dead nor a zombie, as a main thread after pthread_exit(3).
    var isAlive: Bool { state != UInt8(ascii: "Z") && state != UInt8(ascii: "X") }
}

extension ThreadProc {
    /// Reads the thread's files one after another, within about 15 us and none of the thread's time; `nil` if it has
    /// ended.
    func read() -> ThreadReading? {
        let time = monotonicNow()
        guard let onCPU = ThreadClock.exact.nanoseconds(of: thread) else { return nil }
        let times = times
        let shown = text(.syscall).flatMap(ThreadActivity.init)
        let stat = stat
        let switches = switches
        let state = stat?.state ?? switches?.state ?? 0
        let channel = waitChannel
        // The files of a thread that ends in between look empty, like those that a sandbox lacks.
        guard ThreadClock.exact.nanoseconds(of: thread) != nil else { return nil }
        return ThreadReading(
            time: time, onCPU: onCPU, runQueue: times?.runQueue ?? 0, showsRunQueue: (times?.slices ?? 0) > 0,
            slices: times?.slices ?? 0, state: state, minorFaults: stat?.minorFaults ?? 0,
            majorFaults: stat?.majorFaults ?? 0, userTicks: stat?.userTicks ?? 0, systemTicks: stat?.systemTicks ?? 0,
            nice: stat?.nice, voluntarySwitches: switches?.voluntary, involuntarySwitches: switches?.involuntary,
            activity: ThreadActivity(shown: shown, state: state, waitChannel: channel), showsSystemCall: shown != nil,
            waitChannel: channel.function
        )
    }
}

extension WaitChannel {
    /// Returns the purpose of the calls that wait in a kernel function; `nil` if calls of several purposes do.
    ///
    /// The names are those of Linux 5.4 to 6.18. poll(2) and select(2) wait for a time or for data in the same function, and
    /// a wait for a page of a file may be a call's or a page fault's.
    static func purpose(ofFunction name: String) -> StallReport.CauseKind? {
        // The compiler's own copies of a function have a suffix, as in do_wait.constprop.0.
        let base = name.prefix { $0 != "." }
        if base.contains("futex") { return .lock }
        if base.hasSuffix("nanosleep") || base == "common_nsleep" { return .sleep }
        switch base {
        case "locks_lock_inode_wait", "flock_lock_inode_wait", "fcntl_setlk": return .lock
        case "do_wait", "kernel_wait4": return .syscall
        case "pipe_read", "pipe_write", "pipe_wait", "anon_pipe_read", "anon_pipe_write", "wait_for_partner", "ep_poll",
            "do_epoll_wait", "unix_stream_data_wait", "unix_stream_read_generic", "unix_wait_for_peer", "sk_wait_data",
            "sk_stream_wait_memory", "inet_csk_accept", "__skb_wait_for_more_packets", "n_tty_read":
            return .io
        default: return nil
        }
    }
}
