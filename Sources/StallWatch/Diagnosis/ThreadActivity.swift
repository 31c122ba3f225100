import LinuxSupport

/// A thread's activity according to /proc/<pid>/syscall.
enum ThreadActivity: Equatable, Sendable {
    /// On a CPU or waiting for one.
    case running
    /// Waiting outside of system calls, for a page of memory.
    case faulting
    /// Waiting in a system call.
    case waiting(SystemCall)
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
