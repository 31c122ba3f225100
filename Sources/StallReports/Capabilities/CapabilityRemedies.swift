/// The settings, packages and versions that enable a missing feature, from the rules that forbid it.
///
/// Sources: the default seccomp profiles of moby and containerd, pull requests moby 43987 (CAP_PERFMON) and containerd
/// 7714 (AppArmor), Linux's Documentation/admin-guide/LSM/Yama.rst, proc(5), ptrace(2), systemd.exec(5).
struct CapabilityRemedies {
    private let environment: Capabilities.Environment

    init(_ environment: Capabilities.Environment) {
        self.environment = environment
    }

    /// Returns the ways to enable a feature.
    ///
    /// - Parameters:
    ///   - name: The missing feature.
    ///   - missing: All missing features.
    /// - Returns: The settings, packages and versions; empty if nothing is known.
    func remedies(for name: Capabilities.FeatureName, missing: Set<Capabilities.FeatureName>) -> [String] {
        switch name {
        case .ptrace: ptrace
        case .perf: perf
        case .processVMReadv: isFiltered ? ["Docker 23.0 or newer, or containerd 1.7.0 or newer"] : []
        case .read: missing.contains(.syscall) ? syscall : []
        case .syscall: syscall
        case .waitChannel, .schedstat, .stat, .status: procFile
        case .kernelStack: ["CAP_SYS_ADMIN, which is more than a program should have for this"]
        case .pressure, .steal, .bootID:
            ["systemd: no ProcSubset=pid", "a kernel with CONFIG_PSI and psi=1, for the pressure"].prefix(
                name == .pressure ? 2 : 1
            ).map(\.self)
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
        case .flush: ["put the report directory on a file system that supports fsync, such as a volume"]
        default: []
        }
    }

    private var isFiltered: Bool { environment.seccompMode == 2 }
    /// Whether a security module's profile is enforced.
    private var isConfined: Bool {
        guard let label = environment.securityLabel else { return false }
        return label.hasSuffix("(enforce)")
    }
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
        if paranoid > 1 {
            remedies.append("the host: sysctl kernel.perf_event_paranoid=1")
        }
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

    private var syscall: [String] {
        isUndumpable ? [Self.dumpable] : ["Linux's own /proc: gVisor does not have this file, in any setting"]
    }

    private var procFile: [String] {
        isUndumpable ? [Self.dumpable] : ["Linux's own /proc: gVisor and some sandboxes do not have this file"]
    }
}
