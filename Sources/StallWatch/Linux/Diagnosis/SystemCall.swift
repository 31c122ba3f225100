import LinuxSupport
import StackCapture
import StallReports

extension SystemCall {
    /// Creates the call that a stop has met a blocked thread in; `nil` if the stack is of another capture.
    ///
    /// It has begun again since (ptrace(2)): its arguments are valid. The stop shows no stack pointer of the call.
    init?(ofStopped stack: CapturedStack) {
        guard stack.method == .ptrace, stack.threadState == .blocked, let call = stack.call, let number = call.number
        else { return nil }
        self.init(
            number: number, arguments: call.arguments, stackPointer: 0,
            programCounter: stack.frames.first?.address ?? 0
        )
    }
}

extension ThreadActivity {
    /// Concludes the activity from `shown` in /proc/<pid>/syscall, and the state letter of proc(5).
    init(shown: ThreadActivity?, state: UInt8, waitChannel: String?) {
        switch shown {
        case .running, .blocked: self = .running
        case .faulting: self = Self.isFaulting(state, waitChannel) ? .faulting : .running
        case .waiting(let call): self = .waiting(call.original(waitChannel: waitChannel))
        // S and D are waits. A tracer, such as another monitor's capture, has stopped a thread in the states t and T;
        // it continues at once. Without any file the thread's clock alone shows whether it has run.
        case nil: self = [0, UInt8(ascii: "S"), UInt8(ascii: "D")].contains(state) ? .blocked : .running
        }
    }

    /// Returns whether a blocked thread outside of system calls waits for a page; a tracer may also have stopped it.
    private static func isFaulting(_ state: UInt8, _ waitChannel: String?) -> Bool {
        // Linux 4.14 to 5.15 shows no function on x86-64, whatever the thread waits in.
        waitChannel.map { $0 != "ptrace_stop" } ?? (state == UInt8(ascii: "D"))
    }
}

extension SystemCall {
    var isRestarted: Bool { name == "restart_syscall" }

    /// Returns the original of a restart_syscall(2) that waits in a kernel function; this call if none or not known.
    ///
    /// After a signal without a handler, the kernel restarts a wait with a restart block under that name, with the
    /// original arguments. SIGCHLD does this to any thread of a program without a handler for it, if the child ends
    /// before the fork(2) that created it has unblocked the signals.
    func original(waitChannel: String?) -> SystemCall {
        guard isRestarted, let waitChannel, let original = Self.original(waitChannel, argument(0)) else { return self }
        return named(original)
    }

    /// Returns the original of a restarted call, which the thread's innermost functions show; this call if they do not.
    func original(frames: [NamedFrame]) -> SystemCall {
        guard isRestarted else { return self }
        let libraries = frames.prefix { WaitFunctionNames.libraries.contains($0.image) }
        return libraries.compactMap(\.function).compactMap(Self.restarted(by:)).first.map(named) ?? self
    }

    /// Returns the original call that a function of this name in a stack shows; `nil` if it shows none.
    static func restarted(by function: String) -> String? {
        switch function {
        case "nanosleep", "clock_nanosleep", "poll": function
        // syscall(2) can make any call.
        case LockFunction.anyCall: nil
        default: LockFunction.isKnown(function) ? "futex" : nil
        }
    }

    /// Returns this call with another name, or unchanged if the architecture has no call of that name.
    private func named(_ name: String) -> SystemCall {
        var call = self
        call.number = SystemCallNames.current.number(of: name) ?? number
        return call
    }

    private static func original(_ waitChannel: String, _ firstArgument: UInt64) -> String? {
        if waitChannel.contains("nanosleep") {
            // A clock id is a small number, or negative for a CPU clock of a process or thread; a pointer is neither.
            return (-(1 << 32)..<4096).contains(Int64(bitPattern: firstArgument)) ? "clock_nanosleep" : "nanosleep"
        }
        if waitChannel.contains("futex") { return "futex" }
        return waitChannel.contains("poll") ? "poll" : nil
    }

    /// The call's name; `system call <number>` if the call is newer than the table.
    var name: String { SystemCallNames.current.name(number) ?? "system call \(number)" }

    /// What a wait in this call is for: `lock`, `sleep`, `io`, or else `syscall`.
    var purpose: StallReport.CauseKind {
        let name = name
        switch name {
        case "futex", "futex_waitv", "flock", "semop", "semtimedop":
            return .lock
        case "fcntl":
            // Only F_SETLKW and F_OFD_SETLKW (fcntl.h) wait.
            return argument(1) == 7 || argument(1) == 38 ? .lock : .syscall
        case "nanosleep", "clock_nanosleep":
            return .sleep
        case "poll", "ppoll", "select", "pselect6":
            if waitsForSignal { return .syscall }
            return hasDescriptors ? .io : .sleep
        default:
            return Self.isInputOutput(name) ? .io : .syscall
        }
    }

    /// Whether only a signal ends the wait: it has neither a descriptor nor a time limit.
    var waitsForSignal: Bool {
        switch name {
        case "pause", "rt_sigsuspend": true
        case "rt_sigtimedwait": argument(2) == 0
        // The time limit is an int: of its register, only the lower half counts.
        case "poll": argument(1) == 0 && Int32(truncatingIfNeeded: argument(2)) < 0
        case "ppoll": argument(1) == 0 && argument(2) == 0
        case "select", "pselect6": !hasDescriptors && argument(4) == 0
        default: false
        }
    }

    /// Whether a call of poll(2) or select(2) is for descriptors: one that only waits for a time may have a number of
    /// them, and no set.
    private var hasDescriptors: Bool {
        if name.hasSuffix("poll") { return argument(1) != 0 }
        return argument(0) != 0 && (1...3).contains { argument($0) != 0 }
    }

    /// Returns whether a libc function makes a call that waits for data; glibc's wrappers may lack a suffix 64.
    ///
    /// Only such calls are so frequent and short that a thread is seen between them.
    static func waitsForData(_ function: String) -> Bool {
        isInputOutput(function) || isInputOutput(function + "64")
    }

    static func flushes(_ name: String) -> Bool {
        ["fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"].contains(name)
    }

    private static func isInputOutput(_ name: String) -> Bool { takesFile(name) || withoutFile.contains(name) }

    /// The calls that wait for data without a file in their arguments.
    private static let withoutFile: Set = [
        "sync", "msync", "io_submit", "io_getevents", "io_pgetevents", "msgsnd", "msgrcv",
    ]
}

extension ThreadReading {
    var activity: ThreadActivity { ThreadActivity(shown: shown, state: state, waitChannel: waitChannel) }
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
