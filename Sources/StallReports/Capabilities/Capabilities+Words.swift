extension Capabilities.FeatureName {
    /// The feature in words, to follow "no".
    package var title: String {
        switch self {
        case .read: "capture by reading /proc"
        case .ptrace: "capture by ptrace"
        case .signal: "capture by signal"
        case .perf: "capture by perf event"
        case .processVMReadv: "process_vm_readv"
        case .syscall: "/proc/…/syscall"
        case .waitChannel: "/proc/…/wchan"
        case .schedstat: "/proc/…/schedstat"
        case .stat: "/proc/…/stat"
        case .status: "/proc/…/status"
        case .kernelStack: "/proc/…/stack"
        case .pressure: "/proc/pressure"
        case .throttling: "cgroup CPU statistics"
        case .steal: "CPU steal"
        case .pageFaults: "files of page faults"
        case .bootID: "boot id"
        case .symbols: "symbols of the executable"
        case .debugInformation: "debug information of the executable"
        case .libdw: "libdw"
        case .flush: "flush to the disk"
        case .context: "contexts of threads"
        default: rawValue
        }
    }

    /// Whether reports are complete without the feature.
    ///
    /// Most of these are missing in every container: a monitor without them is not degraded.
    package var isOptional: Bool {
        switch self {
        case .perf, .processVMReadv, .kernelStack, .pressure, .throttling, .steal, .pageFaults, .bootID,
            .debugInformation:
            true
        default: false
        }
    }

    /// Returns the data that reports lack without the feature.
    ///
    /// - Parameter missing: All missing features.
    /// - Returns: A sentence without its period; `nil` for an unknown name.
    package func loss(missing: Set<Self>) -> String? {
        switch self {
        case .read:
            missing.contains(.ptrace) || missing.contains(.waitChannel)
                ? "a blocked thread has no stack"
                : "a blocked thread is stopped with ptrace instead; in a call that a stop would interrupt it has no stack"
        case .ptrace:
            missing.contains(.signal)
                ? "a running thread has no stack, and an incomplete stack of a blocked one stays so"
                : "a running thread is captured by signal, which in rare cases interrupts a call, and an incomplete "
                    + "stack of a blocked one stays so"
        case .signal: "a running thread has no stack"
        case .perf:
            "a thread in a long system call has its stack when the call returns, and a few calls such as sendfile(2) "
                + "return early"
        case .processVMReadv: "nothing: memory is read in another way"
        case .syscall:
            missing.contains(.waitChannel)
                ? "a blocked thread has no cause"
                : "the cause of a blocked thread comes from /proc/…/wchan, and names the system call, its target and a "
                    + "lock only if the thread was stopped for its stack"
        case .waitChannel: "causes have no waitChannel"
        case .schedstat: "waiting for a CPU is estimated, and a blocked thread's cause is at most likely"
        case .stat: "causes have no page faults and no share of the kernel"
        case .status: "causes have no context switches"
        case .kernelStack: "causes have no kernelStack"
        case .pressure: "causes have no pressure"
        case .throttling: "a stall by a CPU quota has the cause cpuContention instead of throttled"
        case .steal: "CPU time that the host of a virtual machine takes is not recognized"
        case .pageFaults: "causes of the kind paging have no pagedFile"
        case .bootID: "the report of a killed process stays ongoing instead of abandoned"
        case .symbols: "frames of the executable have build IDs and offsets only, and reports may have no culprit"
        case .debugInformation: "frames of the executable have no files, lines and inlined functions"
        case .libdw: "frames have functions, but no files, lines and inlined functions"
        case .flush: "a power failure may lose the newest reports"
        case .context:
            "reports have no task and no task-local context, or none of threads that are not captured by signal"
        default: nil
        }
    }
}

extension Capabilities {
    /// One sentence for the log, without its period; `nil` if the monitor is not degraded.
    ///
    /// It names the missing features that are not optional, each with its loss.
    public var summary: String? {
        guard isDegraded else { return nil }
        let parts = missing.filter { !$0.isOptional }.map { feature in
            "no \(feature.name.title)" + (feature.detail.map { " (\($0))" } ?? "")
                + (feature.loss.map { ": \($0)" } ?? "")
        }
        return parts.joined(separator: "; ") + "; \"stallwatch doctor \(environment.pid)\" says what to set"
    }
}
