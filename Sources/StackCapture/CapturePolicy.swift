/// The choice of capture methods, a pure function of a thread's status and the system's permissions.
package struct CapturePolicy: Equatable, Sendable {
    /// Whether the system permits stopping threads of this process with ptrace.
    ///
    /// A seccomp filter without ptrace(2), Yama's scopes 2 and 3, and an attached debugger forbid it.
    var mayUsePtrace: Bool

    /// The methods that the policy may choose.
    var permitted: [CapturedStack.Method] { mayUsePtrace ? [.read, .ptrace] : [.read, .signal] }

    /// Returns the methods to try for a thread, in order, until one returns a complete stack.
    ///
    /// None for a thread that waits in an unknown system call: it can be neither read nor stopped safely.
    func methods(for status: ThreadStatus) -> [CapturedStack.Method] {
        switch status.state {
        case .running:
            // Signals are for running threads only: any handler, whatever its flags, ends a timed wait (signal(7)).
            return mayUsePtrace ? [.ptrace] : [.signal]
        case .blocked where status.isOpaque:
            return mayUsePtrace && !status.isInterruptedByStop ? [.ptrace] : []
        case .uninterruptible where status.isOpaque:
            return []
        case .uninterruptible:
            // Such a thread reacts to neither ptrace nor a signal before its wait ends.
            return [.read]
        case .blocked:
            return mayUsePtrace && !status.isInterruptedByStop ? [.read, .ptrace] : [.read]
        }
    }
}
