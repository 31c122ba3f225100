/// Chooses how a thread is captured: a pure function from its state and what the system permits.
package struct CapturePolicy: Equatable, Sendable {
    /// Whether the kernel lets threads of this process be stopped with ptrace.
    ///
    /// Not under a seccomp filter without ptrace(2), Yama's scopes 2 and 3, or a debugger that is there already.
    var mayUsePtrace: Bool

    /// Every method that is used at all.
    var permitted: [CapturedStack.Method] { mayUsePtrace ? [.read, .ptrace] : [.read, .signal] }

    /// The methods to try for a thread, in this order, until one gives a whole stack.
    ///
    /// None for a thread that waits in a call that is not known: it can be neither read nor stopped safely.
    func methods(for status: ThreadStatus) -> [CapturedStack.Method] {
        switch status.state {
        case .running:
            // The signal is for threads on CPU only: any handler, whatever its flags, cuts a timed wait short.
            return mayUsePtrace ? [.ptrace] : [.signal]
        case .blocked where status.isOpaque:
            return mayUsePtrace && !status.isInterruptedByStop ? [.ptrace] : []
        case .uninterruptible where status.isOpaque:
            return []
        case .uninterruptible:
            // It answers neither ptrace nor a signal before its wait is over.
            return [.read]
        case .blocked:
            return mayUsePtrace && !status.isInterruptedByStop ? [.read, .ptrace] : [.read]
        }
    }
}
