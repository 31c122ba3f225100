import LinuxSupport
import Glibc

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
