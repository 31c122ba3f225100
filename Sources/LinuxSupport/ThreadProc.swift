internal import CLinux
import Glibc

/// Whether /proc shows the threads of this process under their own ids.
///
/// It does not where it is not mounted, and where it belongs to another PID namespace, as after `unshare --pid --fork`
/// without `--mount-proc`: there other numbers stand for the same threads, and the same numbers for other processes.
package var showsOwnThreads: Bool { access("/proc/self/task/\(clinux_gettid())", F_OK) == 0 }

/// Whether /proc belongs to another PID namespace.
package var isProcForeign: Bool { access("/proc/self/task", F_OK) == 0 && !showsOwnThreads }

/// The files in /proc/<pid>/task/<tid> that diagnoses and captures read.
package enum ThreadFile: String, CaseIterable, Sendable {
    case syscall, wchan, schedstat, stat, status, stack

    package enum Answer: Equatable, Sendable {
        case shown
        /// The file is there, and does not show its value.
        case hidden
        /// The file cannot be opened.
        case missing(errno: Int32)
    }

    /// Reads the file in a thread's directory; the thread must wait, because `wchan` and `stack` are empty for a
    /// running one.
    package func read(in directory: String) -> Answer {
        guard let text = readSmallFile("\(directory)/\(rawValue)") else { return .missing(errno: errno) }
        return isShown(text) ? .shown : .hidden
    }

    func isShown(_ text: String) -> Bool {
        var cursor = ByteCursor(text)
        switch self {
        // "running", or numbers.
        case .syscall, .stack: return cursor.next != nil
        // The kernel writes "0" for a thread that does not wait, and for a reader without permission.
        case .wchan: return WaitChannel(cursor).function != nil
        // A kernel that does not count shows zeros.
        case .schedstat: return (SchedulingTimes(cursor)?.slices ?? 0) > 0
        case .stat: return ProcStat(cursor) != nil
        case .status: return SwitchCounts(cursor)?.voluntary != nil
        }
    }
}

/// The open files of one thread of this process in /proc; a read takes one system call.
///
/// Each file may be missing or empty, as in sandboxes (gVisor) or in a process that is not dumpable. That costs only what no
/// other file shows, and never means that the thread has ended.
package final class ThreadProc {
    package let thread: Int32
    private let directory: String
    private var files: [ThreadFile: OpenFile] = [:]
    /// Longer than all of these files but `status` of a process in many groups, which come before the counts.
    private var buffer = [UInt8](repeating: 0, count: 4096)

    /// Opens files of a thread; fails if the thread does not exist, or the process is out of descriptors.
    package convenience init?(
        thread: Int32, files: Set<ThreadFile> = [.syscall, .wchan, .schedstat, .stat, .status],
        process: String = "/proc/self"
    ) {
        self.init(thread, files, "\(process)/task/\(thread)")
    }

    /// Opens files of the calling thread, which other threads may read, too.
    package static func ofThisThread(_ files: Set<ThreadFile>) -> ThreadProc? {
        ThreadProc(clinux_gettid(), files, "/proc/thread-self")
    }

    private init?(_ thread: Int32, _ files: Set<ThreadFile>, _ directory: String) {
        self.thread = thread
        self.directory = directory
        for file in files {
            self.files[file] = OpenFile("\(directory)/\(file.rawValue)")
            if self.files[file] == nil, [EMFILE, ENFILE, ENOMEM].contains(errno) { return nil }
        }
        if ThreadClock.exact.nanoseconds(of: thread) == nil { return nil }
    }

    /// Reads a file; `nil` if it is missing or empty.
    package func text(_ file: ThreadFile) -> ByteCursor? {
        let count = files[file]?.read(into: &buffer) ?? 0
        return count > 0 ? ByteCursor(buffer, count: count) : nil
    }

    package var stat: ProcStat? { text(.stat).flatMap(ProcStat.init) }
    package var switches: SwitchCounts? { text(.status).flatMap(SwitchCounts.init) }
    package var times: SchedulingTimes? { text(.schedstat).flatMap(SchedulingTimes.init) }
    package var waitChannel: WaitChannel { WaitChannel(text(.wchan)) }

    /// Reads the kernel functions, innermost first; `nil` without CAP_SYS_ADMIN, and for a running thread.
    package func kernelStack() -> [String]? {
        guard let text = readSmallFile("\(directory)/stack") else { return nil }
        // Each line is "[<0>] function+0x1b/0x30".
        let functions = text.split(separator: "\n").compactMap { line in
            line.split(separator: " ").dropFirst().first?.split(separator: "+").first.map(String.init)
        }
        return functions.isEmpty ? nil : functions
    }
}

/// The fields of /proc/<pid>/stat that StallWatch uses (proc_pid_stat(5)), of a process or of a thread.
package struct ProcStat: Equatable {
    /// The state (field 3): a letter.
    package var state: UInt8
    /// The id of the parent process (field 4).
    package var parent: Int32
    /// Page faults without and with disk access (fields 10 and 12).
    package var minorFaults, majorFaults: UInt64
    /// CPU time in user mode and in the kernel, in clock ticks (fields 14 and 15).
    package var userTicks, systemTicks: UInt64
    /// The nice value (field 19), -20 to 19.
    package var nice: Int32
    /// The number of threads (field 20).
    package var threads: Int
    /// The start time in clock ticks since the boot (field 22).
    package var startTicks: UInt64
    /// The signal that the parent gets at the end (field 38); `nil` if the kernel does not show it.
    package var exitSignal: Int32?

    package var letter: String { String(UnicodeScalar(state)) }

    /// Parses the file's text; `nil` if it lacks a field.
    package init?(_ text: String) { self.init(ByteCursor(text)) }

    package init?(_ text: ByteCursor) {
        var fields = text
        // The command's name in parentheses may contain any character: count fields from the last parenthesis.
        guard fields.skip(pastLast: UInt8(ascii: ")")), let state = fields.next else { return nil }
        fields.skipWords(1)
        guard let parent = fields.number() else { return nil }
        fields.skipWords(5)
        guard let minor = fields.number() else { return nil }
        fields.skipWords(1)
        guard let major = fields.number() else { return nil }
        fields.skipWords(1)
        guard let user = fields.number(), let system = fields.number() else { return nil }
        fields.skipWords(3)
        guard let nice = fields.word().flatMap({ Int32($0) }), let threads = fields.number() else { return nil }
        fields.skipWords(1)
        guard let startTicks = fields.number() else { return nil }
        self.state = state
        self.parent = Int32(clamping: parent)
        (minorFaults, majorFaults, userTicks, systemTicks) = (minor, major, user, system)
        self.nice = nice
        self.threads = Int(clamping: threads)
        self.startTicks = startTicks
        fields.skipWords(15)
        // -1 for a thread that is not the first one.
        exitSignal = fields.word().flatMap { Int32($0) }
    }
}

/// The state of a thread and its changes of it, from /proc/<pid>/status (proc_pid_status(5)).
package struct SwitchCounts: Equatable, Sendable {
    /// The state letter; 0 if the system does not show it.
    package var state: UInt8
    /// The number of times that the thread gave up its CPU to wait; `nil` if the system does not show it.
    package var voluntary: UInt64?
    /// The number of times that the scheduler took the CPU from the thread; `nil` if the system does not show it.
    package var involuntary: UInt64?

    /// Parses the file's text; `nil` if it has none of them.
    package init?(_ text: ByteCursor) {
        var text = text
        state = text.skip(pastLinePrefix: "State:") ? text.next ?? 0 : 0
        voluntary = text.skip(pastLinePrefix: "voluntary_ctxt_switches:") ? text.number() : nil
        involuntary = text.skip(pastLinePrefix: "nonvoluntary_ctxt_switches:") ? text.number() : nil
        if state == 0, voluntary == nil, involuntary == nil { return nil }
    }

    package init?(thread: Int32) {
        guard let text = readSmallFile("/proc/self/task/\(thread)/status") else { return nil }
        self.init(ByteCursor(text))
    }
}

/// The numbers in /proc/<pid>/schedstat (the kernel's sched-stats.rst); all 0 where the kernel does not count.
package struct SchedulingTimes: Equatable, Sendable {
    /// The time on a CPU, in nanoseconds.
    package var onCPU: UInt64
    /// The time runnable without a CPU, in nanoseconds.
    package var runQueue: UInt64
    /// The number of times that the thread has got a CPU.
    package var slices: UInt64

    /// Parses the file's text; `nil` if it lacks a number.
    package init?(_ text: ByteCursor) {
        var text = text
        guard let onCPU = text.number(), let runQueue = text.number(), let slices = text.number() else { return nil }
        (self.onCPU, self.runQueue, self.slices) = (onCPU, runQueue, slices)
    }
}

/// The kernel function that a thread waits in (proc_pid_wchan(5)).
package enum WaitChannel: Equatable, Sendable {
    /// The system does not show it.
    case hidden
    case none
    case function(String)

    /// Parses the file's text, `nil` for a file that is missing or empty.
    package init(_ text: ByteCursor?) {
        var text = text
        switch text?.word() {
        case nil: self = .hidden
        case "0": self = .none
        case .some(let name): self = .function(name)
        }
    }

    /// The function's name; `nil` if there is none or it is hidden.
    package var function: String? {
        if case .function(let name) = self { return name }
        return nil
    }
}
