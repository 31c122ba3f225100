import Glibc
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

/// The open /proc files of one thread; a reading takes one `pread` per file.
///
/// A reading takes about 15 us of the caller's time and none of the thread's. Each file may be missing or empty, as in
/// sandboxes (gVisor) or in a process that is not dumpable. That costs a reading only what no other file shows, and never
/// means that the thread has ended.
final class ThreadFiles {
    /// The largest id of a thread (the kernel's PID_MAX_LIMIT).
    private static let maximumThread: Int32 = 1 << 22

    let thread: Int32
    private let directory: String
    private let schedstat: OpenFile?
    private let stat: OpenFile?
    private let status: OpenFile?
    private let syscall: OpenFile?
    private let waitChannel: OpenFile?
    private var buffer = [UInt8](repeating: 0, count: 4096)

    /// Opens the files of a thread of this process.
    ///
    /// Fails if the thread does not exist, or the process is out of descriptors.
    ///
    /// - Parameters:
    ///   - thread: The thread's kernel id.
    ///   - process: The process's directory under /proc.
    init?(thread: Int32, process: String = "/proc/self") {
        let directory = "\(process)/task/\(thread)/"
        var isOutOfDescriptors = false
        func file(_ name: String) -> OpenFile? {
            if let file = OpenFile(directory + name) { return file }
            if [EMFILE, ENFILE, ENOMEM].contains(errno) { isOutOfDescriptors = true }
            return nil
        }
        self.thread = thread
        self.directory = directory
        schedstat = file("schedstat")
        stat = file("stat")
        status = file("status")
        syscall = file("syscall")
        waitChannel = file("wchan")
        if isOutOfDescriptors || Self.cpuTime(of: thread) == nil { return nil }
    }

    /// Takes a reading of the thread; `nil` if the thread has ended.
    ///
    /// Reads the files one after another, so their values may be some microseconds apart.
    func read() -> ThreadReading? {
        let time = monotonicNow()
        guard let onCPU = Self.cpuTime(of: thread) else { return nil }
        var runQueue: UInt64 = 0
        var slices: UInt64 = 0
        if var times = cursor(schedstat), times.number() != nil, let waited = times.number(), let count = times.number()
        {
            (runQueue, slices) = (waited, count)
        }
        let shown = cursor(syscall).flatMap(ThreadActivity.init)
        let stat = cursor(stat).flatMap(ThreadStat.init)
        var counts = cursor(status)
        let stateInStatus = counts?.skip(pastLinePrefix: "State:") == true ? counts?.next : nil
        let voluntary = counts?.skip(pastLinePrefix: "voluntary_ctxt_switches:") == true ? counts?.number() : nil
        let involuntary = counts?.skip(pastLinePrefix: "nonvoluntary_ctxt_switches:") == true ? counts?.number() : nil
        let state = stat?.state ?? stateInStatus ?? 0
        let channel = WaitChannel(cursor(waitChannel))
        // The files of a thread that ends in between look empty, like those that a sandbox lacks.
        guard Self.cpuTime(of: thread) != nil else { return nil }
        return ThreadReading(
            time: time, onCPU: onCPU, runQueue: runQueue, showsRunQueue: slices > 0, slices: slices, state: state,
            minorFaults: stat?.minorFaults ?? 0, majorFaults: stat?.majorFaults ?? 0, userTicks: stat?.userTicks ?? 0,
            systemTicks: stat?.systemTicks ?? 0, voluntarySwitches: voluntary, involuntarySwitches: involuntary,
            activity: ThreadActivity(shown: shown, state: state, waitChannel: channel), showsSystemCall: shown != nil,
            waitChannel: channel.function, processor: stat?.processor
        )
    }

    /// Reads the thread's kernel functions, innermost first.
    ///
    /// Returns `nil` without CAP_SYS_ADMIN, and for a running thread.
    func kernelStack() -> [String]? {
        guard let text = readSmallFile(directory + "stack") else { return nil }
        // Each line is "[<0>] function+0x1b/0x30".
        let functions = text.split(separator: "\n").compactMap { line in
            line.split(separator: " ").dropFirst().first?.split(separator: "+").first.map(String.init)
        }
        return functions.isEmpty ? nil : functions
    }

    /// Reads a thread's CPU clock, in nanoseconds; `nil` if this process has no such thread.
    ///
    /// The kernel updates it at each read, unlike the first field of schedstat.
    private static func cpuTime(of thread: Int32) -> UInt64? {
        // The clock of thread 0 is that of the calling thread. Beyond the kernel's largest id the encoding would overflow.
        guard (1...maximumThread).contains(thread) else { return nil }
        // clock_getcpuclockid(3)'s encoding for a thread's scheduler clock: CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
        // (the kernel's posix-timers_types.h).
        let clock = clockid_t(truncatingIfNeeded: (~thread << 3) | 4 | 2)
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else { return nil }
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    private func cursor(_ file: OpenFile?) -> ByteCursor? {
        let count = file?.read(into: &buffer) ?? 0
        return count > 0 ? ByteCursor(buffer, count: count) : nil
    }
}

/// The kernel function that a thread waits in (proc_pid_wchan(5)).
enum WaitChannel: Equatable, Sendable {
    /// The system does not show it.
    case hidden
    /// The thread does not wait.
    case none
    case function(String)

    /// Parses the file's text, `nil` for a file that is missing or empty.
    init(_ text: ByteCursor?) {
        var text = text
        switch text?.word() {
        case nil: self = .hidden
        case "0": self = .none
        case .some(let name): self = .function(name)
        }
    }

    /// The function's name; `nil` if there is none or it is hidden.
    var function: String? {
        if case .function(let name) = self { return name }
        return nil
    }

    /// Returns the purpose of the calls that wait in a kernel function; `nil` if calls of several purposes do.
    ///
    /// The names are those of Linux 5.4 to 6.18. poll(2) and select(2) wait for a time or for data in the same function, and
    /// a wait for a page of a file may be a call's or a page fault's.
    static func purpose(ofFunction name: String) -> SystemCall.Purpose? {
        // The compiler's own copies of a function have a suffix, as in do_wait.constprop.0.
        let base = name.prefix { $0 != "." }
        if base.contains("futex") { return .lock }
        if base.hasSuffix("nanosleep") || base == "common_nsleep" { return .sleep }
        switch base {
        case "locks_lock_inode_wait", "flock_lock_inode_wait", "fcntl_setlk": return .lock
        case "do_wait", "kernel_wait4": return .other
        case "pipe_read", "pipe_write", "pipe_wait", "anon_pipe_read", "anon_pipe_write", "wait_for_partner", "ep_poll",
            "do_epoll_wait", "unix_stream_data_wait", "unix_stream_read_generic", "unix_wait_for_peer", "sk_wait_data",
            "sk_stream_wait_memory", "inet_csk_accept", "__skb_wait_for_more_packets", "n_tty_read":
            return .io
        default: return nil
        }
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
