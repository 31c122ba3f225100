import LinuxSupport

/// A thread's activity according to /proc/<pid>/syscall, or without that file to its state.
enum ThreadActivity: Equatable, Sendable {
    /// On a CPU or waiting for one.
    case running
    /// Waiting outside of system calls, for a page of memory.
    case faulting
    /// Waiting in a system call.
    case waiting(SystemCall)
    /// Waiting for something that the system does not show.
    case blocked
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
    /// The system call that the thread waits in; `nil` if it waits in none, or in one that is not known.
    var call: SystemCall? {
        if case .waiting(let call) = self { return call }
        return nil
    }

    /// Concludes the activity from all that the system shows.
    ///
    /// - Parameters:
    ///   - shown: The activity according to /proc/<pid>/syscall; `nil` if the system does not show it.
    ///   - state: The state letter of proc(5).
    ///   - waitChannel: The kernel function that the thread waits in.
    init(shown: ThreadActivity?, state: UInt8, waitChannel: WaitChannel) {
        switch shown {
        case .running, .blocked: self = .running
        case .faulting: self = Self.isFaulting(state, waitChannel) ? .faulting : .running
        case .waiting(let call): self = .waiting(call.original(waitChannel: waitChannel.function))
        // S and D are waits. A tracer, such as another monitor's capture, has stopped a thread in the states t and T; it
        // continues at once.
        case nil: self = state == UInt8(ascii: "S") || state == UInt8(ascii: "D") ? .blocked : .running
        }
    }

    /// Returns whether a thread that is blocked outside of system calls waits for a page.
    ///
    /// It may also be stopped by a tracer. A thread that has left the wait a moment later has not waited long.
    private static func isFaulting(_ state: UInt8, _ waitChannel: WaitChannel) -> Bool {
        switch waitChannel {
        case .function(let name): name != "ptrace_stop"
        case .none: false
        case .hidden: state == UInt8(ascii: "D")
        }
    }
}
