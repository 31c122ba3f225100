internal import CUnwind
import Glibc
import LinuxSupport

/// The open files of one thread of this process in /proc, and what captures have learned of its stack.
///
/// Not thread-safe. A missing or empty file (in gVisor, without PR_SET_DUMPABLE) never means that the thread has ended.
package final class ThreadProbe {
    package let thread: Int32
    private let directory: String
    let handle: OpaquePointer

    /// A set of files in /proc/<pid>/task/<tid>.
    package struct Files: OptionSet, Sendable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }

        package static let schedstat = Files(rawValue: CUNWIND_THREAD_SCHEDSTAT.rawValue)
        package static let status = Files(rawValue: CUNWIND_THREAD_STATUS.rawValue)
        package static let stat = Files(rawValue: CUNWIND_THREAD_STAT.rawValue)
        package static let syscall = Files(rawValue: CUNWIND_THREAD_SYSCALL.rawValue)
        package static let all = Files(rawValue: CUNWIND_ALL_THREAD_FILES.rawValue)
        package static let wchan = Files(rawValue: CUNWIND_THREAD_WCHAN.rawValue)
        /// With others: for one reading, which may take descriptors that are otherwise left to the app.
        fileprivate static let briefly = Files(rawValue: CUNWIND_THREAD_BRIEFLY.rawValue)
        /// With others: they stay open for long, of which a process has few.
        package static let kept = Files(rawValue: CUNWIND_THREAD_KEPT.rawValue)
    }

    /// Opens files of a thread; fails if the thread does not exist, or the process is nearly out of descriptors.
    package convenience init(
        thread: Int32, files: Files = .all, process: String = "/proc/self"
    ) throws(CaptureFailure) {
        try self.init(thread, files, "\(process)/task/\(thread)")
    }

    /// Opens files of the calling thread, which other threads may read, too.
    package convenience init(ofThisThread files: Files) throws(CaptureFailure) {
        // What the link stands for is another thread's when that opens the files again.
        try self.init(callingThread, files, readLink("/proc/thread-self").map { "/proc/\($0)" } ?? "/proc/thread-self")
    }

    private init(_ thread: Int32, _ files: Files, _ directory: String) throws(CaptureFailure) {
        guard let handle = cunwind_thread_open(thread, files.rawValue, directory) else {
            throw errno == ESRCH ? .noSuchThread : .failed(errno: errno)
        }
        self.thread = thread
        self.directory = directory
        self.handle = handle
    }

    deinit { cunwind_thread_close(handle) }

    /// Reads a thread by the files in `kept`, opened if another thread's; by others if these may not stay open.
    package static func read(
        _ thread: Int32, _ files: Files = .all, keeping kept: inout ThreadProbe?
    ) -> ThreadReading? {
        if kept?.thread != thread { kept = try? ThreadProbe(thread: thread, files: [files, .kept]) }
        return kept.map { $0.read() } ?? readBriefly(thread, files)
    }

    /// Reads a thread whose files do not stay open; `nil` if it has ended.
    package static func readBriefly(_ thread: Int32, _ files: Files = .all) -> ThreadReading? {
        try? ThreadProbe(thread: thread, files: [files, .briefly]).read()
    }

    /// Reads the thread's files in turn, within about 10 us and none of the thread's time; `nil` if it has ended.
    package func read() -> ThreadReading? {
        let time = monotonicNow()
        var status = cunwind_thread_status()
        guard let onCPU = cpuTime(of: thread), cunwind_thread_inspect(handle, &status) == CUNWIND_OK else { return nil }
        var reading = ThreadReading(time: time, onCPU: onCPU)
        (reading.runQueue, reading.slices) = (status.slices > 0 ? status.run_queue : 0, status.slices)
        reading.state = UInt8(bitPattern: status.state)
        (reading.minorFaults, reading.majorFaults) = (status.minor_faults, status.major_faults)
        (reading.userTicks, reading.systemTicks) = (status.user_ticks, status.system_ticks)
        reading.nice = status.shows_stat ? status.nice : nil
        reading.voluntarySwitches = status.counts_switches ? status.voluntary_switches : nil
        reading.involuntarySwitches = status.counts_switches ? status.involuntary_switches : nil
        reading.shown = ThreadActivity(status)
        reading.waitChannel = withUnsafeBytes(of: status.waits_in) { name in
            name.first == 0 ? nil : String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        }
        return reading
    }

    /// Reads where the thread waits now; `nil` if it does not wait for events without an end.
    package func epollWait() -> EpollWait? { read()?.shown?.call.flatMap(EpollWait.init) }

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

extension ThreadActivity {
    /// Parses /proc/<pid>/syscall of a thread of any process; `nil` if it is empty.
    package init?(systemCallFile text: String) {
        guard !text.isEmpty else { return nil }
        var status = cunwind_thread_status()
        cunwind_parse_system_call(text, &status)
        self.init(status)
    }

    fileprivate init?(_ status: cunwind_thread_status) {
        guard status.shows_system_call else { return nil }
        let arguments = status.arguments
        if !status.is_blocked {
            self = .running
        } else if status.system_call < 0 {
            self = .faulting
        } else {
            self = .waiting(
                SystemCall(
                    number: Int(status.system_call),
                    arguments: [arguments.0, arguments.1, arguments.2, arguments.3, arguments.4, arguments.5],
                    stackPointer: status.stack_pointer, programCounter: status.pc))
        }
    }
}
