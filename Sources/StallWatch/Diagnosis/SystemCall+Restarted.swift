extension SystemCall {
    /// Whether this is a restarted call whose original is not known.
    var isRestarted: Bool { name == "restart_syscall" }

    /// Returns the original call if the kernel reports restart_syscall(2), according to the kernel's wait function.
    ///
    /// After a signal without a handler, the kernel restarts a wait with a restart block under that name, with the
    /// original arguments. SIGCHLD does this to any thread of a program without a handler for it, if the child ends
    /// before the fork(2) that created it has unblocked the signals.
    ///
    /// - Parameter waitChannel: The kernel function that the thread waits in.
    /// - Returns: The original call; this call if it was not restarted or the original is not known.
    func original(waitChannel: String?) -> SystemCall {
        guard isRestarted, let waitChannel, let original = Self.original(waitChannel, argument(0)) else { return self }
        return named(original)
    }

    /// Returns the original call according to the thread's innermost functions.
    ///
    /// They show it even if the thread was observed while it entered or left the wait.
    ///
    /// - Parameter frames: The thread's frames with names, innermost first.
    /// - Returns: The original call; this call if it was not restarted or the original is not known.
    func original(frames: [NamedFrame]) -> SystemCall {
        guard isRestarted else { return self }
        let libraries = frames.prefix { WaitFunctionNames.libraries.contains($0.image) }
        return libraries.compactMap(\.function).compactMap(Self.restarted(by:)).first.map(named) ?? self
    }

    /// Returns whether a function of this name in a stack shows the original call.
    static func isRestarted(by function: String) -> Bool { restarted(by: function) != nil }

    private static func restarted(by function: String) -> String? {
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
            // A clock id is a small number, or a negative one for a CPU clock of a process or thread; a pointer is
            // neither.
            return (-(1 << 32)..<4096).contains(Int64(bitPattern: firstArgument)) ? "clock_nanosleep" : "nanosleep"
        }
        if waitChannel.contains("futex") { return "futex" }
        return waitChannel.contains("poll") ? "poll" : nil
    }
}
