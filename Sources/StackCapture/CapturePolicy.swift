/// The choice of capture methods, a pure function of a thread's status and the system's permissions.
package struct CapturePolicy: Equatable, Sendable {
    /// Whether the system permits stopping threads of this process with ptrace.
    ///
    /// A seccomp filter without ptrace(2), Yama's scopes 2 and 3, and an attached debugger forbid it.
    var mayUsePtrace: Bool
    /// Whether the system permits sampling the kernel with perf events; `nil` until it is tried.
    ///
    /// The sysctl kernel.perf_event_paranoid forbids it without CAP_PERFMON, and so do the filters of containers.
    var mayUsePerf: Bool?
    /// Whether a thread may get a signal where ptrace is refused.
    var maySignal = true

    /// The methods that the policy may choose.
    var permitted: [CapturedStack.Method] {
        [.read] + stops + (mayUsePerf == true ? [.perf] : [])
    }

    /// The method that keeps a running thread from running, if there is one.
    private var stops: [CapturedStack.Method] { mayUsePtrace ? [.ptrace] : maySignal ? [.signal] : [] }

    /// Returns the methods to try for a thread, in order, until one returns a complete stack.
    ///
    /// None for a thread that waits in an unknown system call: it can be neither read nor stopped safely.
    ///
    /// - Parameters:
    ///   - status: The thread's status.
    ///   - mayBeInKernel: Whether the thread, if it runs, may be in a system call.
    /// - Returns: The methods.
    func methods(for status: ThreadStatus, mayBeInKernel: Bool = false) -> [CapturedStack.Method] {
        switch status.state {
        case .running:
            // A stop or a signal makes calls such as copy_file_range(2) and sendfile(2) return short. Only a perf event
            // shows that the thread is in a call, and captures it there.
            let sampled: [CapturedStack.Method] = mayBeInKernel && mayUsePerf != false ? [.perf] : []
            // Signals are for running threads only: any handler, whatever its flags, ends a timed wait (signal(7)).
            return sampled + stops
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
