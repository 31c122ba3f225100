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
        case .libunwind: "libunwind"
        default: rawValue
        }
    }

    /// Whether reports are complete without the feature.
    ///
    /// Most of these are missing in every container: a monitor without them is not degraded.
    package var isOptional: Bool {
        switch self {
        case .perf, .processVMReadv, .kernelStack, .pressure, .throttling, .steal, .pageFaults, .bootID,
            .debugInformation, .libunwind:
            true
        default: false
        }
    }

    /// What reports lack without the feature: a sentence without its period; `nil` for an unknown name.
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
        case .libunwind: "nothing: stacks are unwound by the built-in unwinder"
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
        let isProcForeign = environment.isProcForeign == true
        let features = missing.filter { !$0.isOptional && !(isProcForeign && Environment.ofProc.contains($0.name)) }
        var parts = features.map { feature in
            "no \(feature.name.title)" + (feature.detail.map { " (\($0))" } ?? "")
                + (feature.loss.map { ": \($0)" } ?? "")
        }
        if isProcForeign { parts.insert(Environment.foreignProc, at: 0) }
        return parts.joined(separator: "; ") + "; \"stallwatch doctor \(environment.pid)\" says what to set"
    }
}

extension Capabilities.Environment {
    package init(pid: Int32) { self.pid = pid }

    /// What a /proc of another PID namespace means, in a sentence without its period.
    package static let foreignProc =
        "/proc belongs to another PID namespace and counts as missing: blocked threads have neither a stack nor a cause"
    /// The features that go with it.
    static let ofProc: Set<Capabilities.FeatureName> = [.read, .syscall, .waitChannel, .schedstat, .stat, .status]
    /// How to mount the right one.
    static let ownProc =
        "mount the namespace's own /proc: unshare --mount-proc, bwrap --proc /proc, or mount -t proc proc /proc"
}

/// The settings, packages and versions that enable a missing feature, from the rules that forbid it.
///
/// Sources: the default seccomp profiles of moby and containerd, pull requests moby 43987 (CAP_PERFMON) and containerd
/// 7714 (AppArmor), Linux's Documentation/admin-guide/LSM/Yama.rst, proc(5), ptrace(2), systemd.exec(5).
struct CapabilityRemedies {
    let environment: Capabilities.Environment

    /// The settings, packages and versions that enable a missing feature; empty if none is known.
    func remedies(for name: Capabilities.FeatureName, missing: Set<Capabilities.FeatureName>) -> [String] {
        switch name {
        case .ptrace: ptrace
        case .perf: perf
        case .processVMReadv: isFiltered ? ["Docker 23.0 or newer, or containerd 1.7.0 or newer"] : []
        case .read: missing.contains(.syscall) ? syscall : []
        case .syscall: syscall
        case .waitChannel, .schedstat, .stat, .status: procFile
        case .kernelStack: ["CAP_SYS_ADMIN, which is more than a program should have for this"]
        case .bootID where environment.isProcForeign == true: procFile
        case .pressure, .steal, .bootID:
            ["systemd: no ProcSubset=pid"]
                + (name == .pressure ? ["a kernel with CONFIG_PSI and psi=1, for the pressure"] : [])
        case .throttling: ["mount the cgroup file system at /sys/fs/cgroup, read-only is enough"]
        case .pageFaults: pageFaults
        case .symbols: ["do not strip the executable, or put its debug file into /usr/lib/debug/.build-id"]
        case .debugInformation:
            [
                "ship the executable with its debug information, or put its debug file into /usr/lib/debug/.build-id",
                "add lines later: stallwatch symbolicate --debug-path",
            ]
        case .libdw:
            [
                "Debian, Ubuntu: apt-get install --no-install-recommends libdw1",
                "Fedora, RHEL: dnf install elfutils-libs", "link without -static-executable",
                "add lines later: stallwatch symbolicate",
            ]
        case .libunwind:
            [
                "Debian, Ubuntu: apt-get install --no-install-recommends libunwind8",
                "Fedora, RHEL: dnf install libunwind", "unset STALLWATCH_UNWINDER",
            ]
        case .flush: ["put the report directory on a file system that supports fsync, such as a volume"]
        default: []
        }
    }

    private var isFiltered: Bool { environment.seccompMode == 2 }
    private var isConfined: Bool { environment.securityLabel?.hasSuffix("(enforce)") == true }
    /// Whether the process is not dumpable, and no privilege makes up for that.
    private var isUndumpable: Bool { environment.isDumpable == false && environment.maySysPtrace != true }

    private static let dumpable =
        "make the process dumpable: no prctl(PR_SET_DUMPABLE, 0), no set-user-ID bit or file capabilities, and an "
        + "executable that its user may read"

    private var ptrace: [String] {
        var remedies: [String] = []
        if let tracer = environment.tracer { remedies.append("detach the tracer, process \(tracer)") }
        if isUndumpable { remedies.append(Self.dumpable) }
        switch environment.yamaScope {
        case 2 where environment.maySysPtrace != true:
            remedies += [
                "the host: sysctl kernel.yama.ptrace_scope=1", "Docker, Podman: --cap-add SYS_PTRACE",
                "Kubernetes: securityContext.capabilities.add: [SYS_PTRACE]",
                "systemd: AmbientCapabilities=CAP_SYS_PTRACE",
            ]
        case 3: remedies.append("the host: sysctl kernel.yama.ptrace_scope=1, which takes effect at the next boot")
        default: break
        }
        if isFiltered {
            remedies += [
                "Docker, Podman: --cap-add SYS_PTRACE, or a --security-opt seccomp= profile with ptrace",
                "Kubernetes: securityContext.capabilities.add: [SYS_PTRACE], or a Localhost seccompProfile with ptrace",
                "systemd: SystemCallFilter=ptrace on a line of its own",
            ]
        }
        if isConfined {
            remedies += [
                "containerd 1.7.0 or newer, whose AppArmor profile permits it",
                "Docker: --security-opt apparmor=unconfined",
                "Kubernetes: securityContext.appArmorProfile.type: Unconfined",
            ]
        }
        guard remedies.isEmpty else { return remedies }
        return ["no rule that a program can see forbids it: AWS Lambda and some sandboxes cannot permit it"]
    }

    private var perf: [String] {
        guard let paranoid = environment.perfEventParanoid else { return ["a kernel with CONFIG_PERF_EVENTS"] }
        var remedies: [String] = []
        if paranoid > 1 { remedies.append("the host: sysctl kernel.perf_event_paranoid=1") }
        return remedies + [
            "Docker 23.0 or newer: --cap-add PERFMON", "Podman: --cap-add PERFMON,SYS_ADMIN",
            "Kubernetes: securityContext.capabilities.add: [PERFMON]",
            "systemd: AmbientCapabilities=CAP_PERFMON"
                + (isFiltered ? " and SystemCallFilter=perf_event_open on a line of its own" : ""),
        ]
    }

    private var pageFaults: [String] {
        if isFiltered { return ["run without a seccomp filter: under one, the monitor does not try it"] }
        guard let paranoid = environment.perfEventParanoid else { return ["a kernel with CONFIG_PERF_EVENTS"] }
        return paranoid > 2 ? ["the host: sysctl kernel.perf_event_paranoid=2"] : []
    }

    private var syscall: [String] { proc("gVisor does not have this file, in any setting") }
    private var procFile: [String] { proc("gVisor and some sandboxes do not have this file") }

    private func proc(_ missing: String) -> [String] {
        environment.isProcForeign == true
            ? [Capabilities.Environment.ownProc] : [isUndumpable ? Self.dumpable : "Linux's own /proc: \(missing)"]
    }
}
