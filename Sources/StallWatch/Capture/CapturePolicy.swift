/// Chooses how a thread is captured: a pure function from its state and what the system permits.
struct CapturePolicy: Equatable, Sendable {
    /// Whether the kernel lets threads of this process be stopped with ptrace.
    ///
    /// Not under a seccomp filter without ptrace(2), Yama's scopes 2 and 3, or a debugger that is there already.
    var mayStop: Bool

    /// Every method that is used at all.
    var permitted: [CapturedStack.Method] { mayStop ? [.read, .stop] : [.read, .signal] }

    /// The methods to try for a thread, in this order, until one gives a whole stack.
    func methods(for look: ThreadLook) -> [CapturedStack.Method] {
        switch look.state {
        case .running:
            // The signal is for threads on CPU only: any handler, whatever its flags, cuts a timed wait short.
            return mayStop ? [.stop] : [.signal]
        case .uninterruptible:
            // It answers neither ptrace nor a signal before its wait is over.
            return [.read]
        case .blocked:
            return mayStop && !look.isInterruptedByStop ? [.read, .stop] : [.read]
        }
    }
}
