import LinuxSupport
import Glibc

/// The open /proc files of one thread; a reading takes one `pread` per file.
///
/// A reading takes about 15 us of the caller's time and none of the thread's.
final class ThreadFiles {
    let thread: Int32
    private let schedstat: OpenFile
    private let stat: OpenFile
    private let status: OpenFile
    private let syscall: OpenFile
    private let waitChannel: OpenFile
    private var buffer = [UInt8](repeating: 0, count: 4096)

    /// Opens the files of a thread of this process.
    ///
    /// Fails if the thread does not exist, or the process is out of descriptors.
    init?(thread: Int32) {
        let directory = "/proc/self/task/\(thread)/"
        guard let schedstat = OpenFile(directory + "schedstat"), let stat = OpenFile(directory + "stat"),
            let status = OpenFile(directory + "status"), let syscall = OpenFile(directory + "syscall"),
            let waitChannel = OpenFile(directory + "wchan")
        else { return nil }
        self.thread = thread
        self.schedstat = schedstat
        self.stat = stat
        self.status = status
        self.syscall = syscall
        self.waitChannel = waitChannel
    }

    /// Takes a reading of the thread; `nil` if the thread has ended.
    ///
    /// Reads the files one after another, so their values may be some microseconds apart.
    func read() -> ThreadReading? {
        let time = monotonicNow()
        guard let onCPU = cpuTime(), var times = cursor(schedstat), times.number() != nil,
            let runQueue = times.number(), let activity = cursor(syscall).flatMap(ThreadActivity.init),
            let stat = cursor(stat).flatMap(ThreadStat.init), var counts = cursor(status),
            counts.skip(pastLinePrefix: "voluntary_ctxt_switches:"), let voluntary = counts.number(),
            counts.skip(pastLinePrefix: "nonvoluntary_ctxt_switches:"), let involuntary = counts.number()
        else { return nil }
        let slices = times.number() ?? 0
        let channel = channel()
        return ThreadReading(
            time: time, onCPU: onCPU, runQueue: runQueue, slices: slices, state: stat.state,
            minorFaults: stat.minorFaults,
            majorFaults: stat.majorFaults, userTicks: stat.userTicks, systemTicks: stat.systemTicks,
            voluntarySwitches: voluntary, involuntarySwitches: involuntary,
            activity: activity.original(waitChannel: channel).confirmed(by: channel), waitChannel: channel,
            processor: stat.processor
        )
    }

    /// Reads the thread's current activity; `nil` if the thread has ended.
    func activity() -> ThreadActivity? {
        cursor(syscall).flatMap(ThreadActivity.init)?.original(waitChannel: channel())
    }

    private func channel() -> String? {
        var place = cursor(waitChannel)
        let channel = place?.word()
        // "0" means that the thread does not wait (proc_pid_wchan(5)).
        return channel == "0" ? nil : channel
    }

    /// Reads the thread's kernel functions, innermost first.
    ///
    /// Returns `nil` without CAP_SYS_ADMIN, and for a running thread.
    func kernelStack() -> [String]? {
        guard let text = readSmallFile("/proc/self/task/\(thread)/stack") else { return nil }
        // Each line is "[<0>] function+0x1b/0x30".
        let functions = text.split(separator: "\n").compactMap { line in
            line.split(separator: " ").dropFirst().first?.split(separator: "+").first.map(String.init)
        }
        return functions.isEmpty ? nil : functions
    }

    /// Reads the thread's CPU clock, in nanoseconds.
    ///
    /// The kernel updates it at each read, unlike the first field of schedstat.
    private func cpuTime() -> UInt64? {
        // clock_getcpuclockid(3)'s encoding for a thread's scheduler clock: CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
        // (the kernel's posix-timers_types.h).
        let clock = clockid_t(truncatingIfNeeded: (~thread << 3) | 4 | 2)
        var time = timespec()
        guard clock_gettime(clock, &time) == 0 else { return nil }
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    private func cursor(_ file: OpenFile) -> ByteCursor? {
        let count = file.read(into: &buffer)
        return count > 0 ? ByteCursor(buffer, count: count) : nil
    }
}
