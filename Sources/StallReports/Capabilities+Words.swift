extension Capabilities.FeatureName {
    // The table `CapabilityRow.all` says what each of them is.
    package static var read: Self { Self(rawValue: "read") }
    package static var ptrace: Self { Self(rawValue: "ptrace") }
    package static var signal: Self { Self(rawValue: "signal") }
    package static var processVMReadv: Self { Self(rawValue: "processVMReadv") }
    package static var syscall: Self { Self(rawValue: "syscall") }
    package static var waitChannel: Self { Self(rawValue: "waitChannel") }
    package static var schedstat: Self { Self(rawValue: "schedstat") }
    package static var stat: Self { Self(rawValue: "stat") }
    package static var status: Self { Self(rawValue: "status") }
    package static var kernelStack: Self { Self(rawValue: "kernelStack") }
    package static var pressure: Self { Self(rawValue: "pressure") }
    package static var throttling: Self { Self(rawValue: "throttling") }
    package static var steal: Self { Self(rawValue: "steal") }
    package static var pageFaults: Self { Self(rawValue: "pageFaults") }
    package static var bootID: Self { Self(rawValue: "bootID") }
    package static var symbols: Self { Self(rawValue: "symbols") }
    package static var debugInformation: Self { Self(rawValue: "debugInformation") }
    package static var libdw: Self { Self(rawValue: "libdw") }
    package static var flush: Self { Self(rawValue: "flush") }
    package static var context: Self { Self(rawValue: "context") }
    package static var pinnedThreads: Self { Self(rawValue: "pinnedThreads") }
    package static var libunwind: Self { Self(rawValue: "libunwind") }

    /// The names that this version writes, in the order of ``Capabilities/features``.
    package static var known: [Self] { CapabilityRow.all.map(\.name) }

    /// The feature in words, to follow "no".
    package var title: String { CapabilityRow.all.first { $0.name == self }?.title ?? rawValue }
}

/// A feature of the table: its words, what reports lack without it, and what enables it.
struct CapabilityRow: Sendable {
    typealias Name = Capabilities.FeatureName

    let name: Name
    let title: String
    /// Whether reports are complete without it: most such are missing in every container, which degrades no monitor.
    let isOptional: Bool
    /// What reports lack without it: a sentence without its period.
    let loss: @Sendable (_ missing: Set<Name>) -> String
    let remedies: @Sendable (CapabilityRemedies) -> [String]

    private init(
        _ name: Name, _ title: String, isOptional: Bool = false, lossOf: @escaping @Sendable (Set<Name>) -> String,
        remedies: @escaping @Sendable (CapabilityRemedies) -> [String] = { _ in [] }
    ) {
        (self.name, self.title, self.isOptional, self.loss, self.remedies) = (name, title, isOptional, lossOf, remedies)
    }

    private init(
        _ name: Name, _ title: String, isOptional: Bool = false, loss: String,
        remedies: @escaping @Sendable (CapabilityRemedies) -> [String] = { _ in [] }
    ) {
        self.init(name, title, isOptional: isOptional, lossOf: { _ in loss }, remedies: remedies)
    }

    static let all: [Self] = [
        Self(
            .read, "capture by reading /proc",
            lossOf: { missing in
                missing.contains(.ptrace) || missing.contains(.waitChannel)
                    ? "a blocked thread has no stack"
                    : """
                    a blocked thread is stopped with ptrace instead; in a call that a stop would interrupt it has no stack
                    """
            }, remedies: { $0.missing.contains(.syscall) ? $0.syscall : [] }),
        Self(
            .ptrace, "capture by ptrace",
            lossOf: { missing in
                missing.contains(.signal)
                    ? "a running thread has no stack, and an incomplete stack of a blocked one stays so"
                    : """
                    a running thread is captured by signal, which in rare cases interrupts a call, and an incomplete stack \
                    of a blocked one stays so
                    """
            }, remedies: \.ptrace),
        Self(.signal, "capture by signal", loss: "a running thread has no stack"),
        Self(
            .processVMReadv, "process_vm_readv", isOptional: true, loss: "nothing: memory is read in another way",
            remedies: { $0.isFiltered ? ["Docker 23.0 or newer, or containerd 1.7.0 or newer"] : [] }),
        Self(
            .syscall, "/proc/…/syscall",
            lossOf: { missing in
                missing.contains(.waitChannel)
                    ? "a blocked thread has no cause"
                    : """
                    the cause of a blocked thread comes from /proc/…/wchan, and names the system call, its target and a \
                    lock only if the thread was stopped for its stack
                    """
            }, remedies: \.syscall),
        Self(.waitChannel, "/proc/…/wchan", loss: "causes have no waitChannel", remedies: \.procFile),
        Self(
            .schedstat, "/proc/…/schedstat",
            loss: "waiting for a CPU is estimated, and a blocked thread's cause is at most likely",
            remedies: \.procFile),
        Self(
            .stat, "/proc/…/stat", loss: "causes have no page faults and no share of the kernel",
            remedies: \.procFile),
        Self(.status, "/proc/…/status", loss: "causes have no context switches", remedies: \.procFile),
        Self(
            .kernelStack, "/proc/…/stack", isOptional: true, loss: "causes have no kernelStack",
            remedies: { _ in ["CAP_SYS_ADMIN, which is more than a program should have for this"] }),
        Self(
            .pressure, "/proc/pressure", isOptional: true, loss: "causes have no pressure",
            remedies: { _ in [allOfProc, "a kernel with CONFIG_PSI and psi=1, for the pressure"] }),
        Self(
            .throttling, "cgroup CPU statistics", isOptional: true,
            loss: "a stall by a CPU quota has the cause cpuContention instead of throttled",
            remedies: { _ in ["mount the cgroup file system at /sys/fs/cgroup, read-only is enough"] }),
        Self(
            .steal, "CPU steal", isOptional: true,
            loss: "CPU time that the host of a virtual machine takes is not recognized",
            remedies: { _ in [allOfProc] }),
        Self(
            .pageFaults, "files of page faults", isOptional: true, loss: "causes of the kind paging have no pagedFile",
            remedies: \.pageFaults),
        Self(
            .bootID, "boot id", isOptional: true,
            loss: "the report of a killed process stays ongoing instead of abandoned",
            remedies: { $0.environment.isProcForeign == true ? $0.procFile : [allOfProc] }),
        Self(
            .symbols, "symbols of the executable",
            loss: "frames of the executable have build IDs and offsets only, and reports may have no culprit",
            remedies: { _ in ["do not strip the executable, or put its debug file into /usr/lib/debug/.build-id"] }),
        Self(
            .debugInformation, "debug information of the executable", isOptional: true,
            loss: "frames of the executable have no files, lines and inlined functions",
            remedies: { _ in
                [
                    """
                    ship the executable with its debug information, or put its debug file into /usr/lib/debug/.build-id
                    """,
                    "add lines later: stallwatch symbolicate --debug-path",
                ]
            }),
        Self(
            .libdw, "libdw", loss: "frames have functions, but no files, lines and inlined functions",
            remedies: { _ in
                [
                    "Debian, Ubuntu: apt-get install --no-install-recommends libdw1",
                    "Fedora, RHEL: dnf install elfutils-libs", "link without -static-executable",
                    "add lines later: stallwatch symbolicate",
                ]
            }),
        Self(
            .flush, "flush to the disk", loss: "a power failure may lose the newest reports",
            remedies: { _ in ["put the report directory on a file system that supports fsync, such as a volume"] }),
        Self(
            .context, "contexts of threads",
            loss: "reports have no task and no task-local context, or none of threads that are not captured by signal"),
        Self(
            .pinnedThreads, "threads of the task pool", isOptional: true,
            loss: "a task that keeps a thread of the pool is not reported"),
        Self(
            .libunwind, "libunwind", isOptional: true, loss: "nothing: stacks are unwound by the built-in unwinder",
            remedies: { _ in
                [
                    "Debian, Ubuntu: apt-get install --no-install-recommends libunwind8",
                    "Fedora, RHEL: dnf install libunwind", "unset STALLWATCH_UNWINDER",
                ]
            }),
    ]

    private static let allOfProc = "systemd: no ProcSubset=pid"
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
        return parts.joined(separator: "; ") + "; \"stallwatch doctor\" says what to set"
    }
}

extension Capabilities.Environment {
    package init(pid: Int32) { self.pid = pid }

    /// What a /proc of another PID namespace means, in a sentence without its period.
    package static let foreignProc =
        "/proc belongs to another PID namespace and counts as missing: blocked threads have neither a stack nor a cause"
    /// The features that go with it.
    static let ofProc: Set<Capabilities.FeatureName> = [.read, .syscall, .waitChannel, .schedstat, .stat, .status]
    static let ownProc =
        "mount the namespace's own /proc: unshare --mount-proc, bwrap --proc /proc, or mount -t proc proc /proc"
}

/// The settings, packages and versions that enable a missing feature, from the rules that forbid it.
///
/// Sources: the default seccomp profiles of moby and containerd, pull request containerd 7714 (AppArmor), Linux's Documentation/admin-guide/LSM/Yama.rst, proc(5), ptrace(2), systemd.exec(5).
struct CapabilityRemedies: Sendable {
    let environment: Capabilities.Environment
    let missing: Set<Capabilities.FeatureName>

    fileprivate var isFiltered: Bool { environment.seccompMode == 2 }
    private var isConfined: Bool { environment.securityLabel?.hasSuffix("(enforce)") == true }
    /// Whether the process is not dumpable, and no privilege makes up for that.
    private var isUndumpable: Bool { environment.isDumpable == false && environment.maySysPtrace != true }

    private static let dumpable =
        "make the process dumpable: no prctl(PR_SET_DUMPABLE, 0), no set-user-ID bit or file capabilities, and an "
        + "executable that its user may read"

    fileprivate var ptrace: [String] {
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

    fileprivate var pageFaults: [String] {
        if isFiltered { return ["run without a seccomp filter: under one, the monitor does not try it"] }
        guard let paranoid = environment.perfEventParanoid else { return ["a kernel with CONFIG_PERF_EVENTS"] }
        return paranoid > 2 ? ["the host: sysctl kernel.perf_event_paranoid=2"] : []
    }

    fileprivate var syscall: [String] { proc("gVisor does not have this file, in any setting") }
    fileprivate var procFile: [String] { proc("gVisor and some sandboxes do not have this file") }

    private func proc(_ missing: String) -> [String] {
        environment.isProcForeign == true
            ? [Capabilities.Environment.ownProc] : [isUndumpable ? Self.dumpable : "Linux's own /proc: \(missing)"]
    }
}
