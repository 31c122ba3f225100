extension SystemCall {
    /// Whether it is another call that goes on, and not known which.
    var isRestarted: Bool { name == "restart_syscall" }

    /// The call that was made, where the kernel names restart_syscall(2).
    ///
    /// A wait that a signal without a handler has ended goes on under that name: of the calls that keep their rest in a
    /// restart block, with the arguments of the call itself. A child's SIGCHLD does that to any thread of a program that does
    /// not handle it, if the child ends before the fork(2) that made it has unblocked the signals. Where the thread waits
    /// in the kernel tells which call it was.
    func original(waitChannel: String?) -> SystemCall {
        guard isRestarted, let waitChannel, let original = Self.original(waitChannel, argument(0)) else { return self }
        return named(original)
    }

    /// The call that was made, by the thread's innermost functions.
    ///
    /// They tell where the kernel's wait does not: of a thread that was met on its way into the wait, or out of it.
    func original(frames: [NamedFrame]) -> SystemCall {
        guard isRestarted else { return self }
        let libraries = frames.prefix { WaitFunctionNames.libraries.contains($0.image) }
        return libraries.compactMap(\.function).compactMap(Self.restarted(by:)).first.map(named) ?? self
    }

    /// Whether a function of that name in a stack says which call goes on.
    static func isRestarted(by function: String) -> Bool { restarted(by: function) != nil }

    private static func restarted(by function: String) -> String? {
        switch function {
        case "nanosleep", "clock_nanosleep", "poll": function
        // syscall(2) makes any call.
        case LockFunction.anyCall: nil
        default: LockFunction.isKnown(function) ? "futex" : nil
        }
    }

    /// The same with another name, if the architecture has a call of that name.
    private func named(_ name: String) -> SystemCall {
        var call = self
        call.number = SystemCallNames.current.number(of: name) ?? number
        return call
    }

    private static func original(_ waitChannel: String, _ firstArgument: UInt64) -> String? {
        if waitChannel.contains("nanosleep") {
            // A clock is a small number, or a negative one for a process' own; a pointer is neither.
            return (-(1 << 32)..<4096).contains(Int64(bitPattern: firstArgument)) ? "clock_nanosleep" : "nanosleep"
        }
        if waitChannel.contains("futex") { return "futex" }
        return waitChannel.contains("poll") ? "poll" : nil
    }
}

extension ThreadActivity {
    /// The same with the call that was made, if it goes on as restart_syscall(2).
    func original(waitChannel: String?) -> ThreadActivity {
        guard case .waiting(let call) = self else { return self }
        return .waiting(call.original(waitChannel: waitChannel))
    }
}
