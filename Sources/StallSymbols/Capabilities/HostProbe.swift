package import LinuxSupport
package import StallReports
import Glibc

/// Tries the parts of the capabilities that the library and the tool try in the same way.
package enum HostProbe {
    /// Returns the system's rules for the calling process.
    package static func environment() -> Capabilities.Environment {
        let status = readSmallFile("/proc/self/status").flatMap(ProcessStatus.init)
        var environment = environment(of: getpid(), status, directory: "/proc/self")
        environment.userID = geteuid()
        environment.isDumpable = LinuxSupport.isDumpable
        return environment
    }

    /// Returns the system's rules for another process, as far as /proc shows them.
    package static func environment(of process: Int32, _ status: ProcessStatus) -> Capabilities.Environment {
        let directory = "/proc/\(process)"
        var environment = environment(of: process, status, directory: directory)
        // The files of a process that is not dumpable belong to root (proc(5)).
        if status.effectiveUser != 0, let owner = FileStatus(path: directory)?.owner {
            environment.isDumpable = owner == status.effectiveUser
        }
        return environment
    }

    private static func environment(
        of process: Int32, _ status: ProcessStatus?, directory: String
    ) -> Capabilities.Environment {
        var system = utsname()
        uname(&system)
        return Capabilities.Environment(
            pid: process, userID: status?.effectiveUser, kernel: string(system.release),
            architecture: string(system.machine), seccompMode: status?.seccompMode,
            hasNoNewPrivileges: status?.hasNoNewPrivileges,
            yamaScope: number("/proc/sys/kernel/yama/ptrace_scope"),
            securityLabel: securityLabel(
                readSmallFile("\(directory)/attr/apparmor/current") ?? readSmallFile("\(directory)/attr/current")),
            maySysPtrace: status?.maySysPtrace, perfEventParanoid: number("/proc/sys/kernel/perf_event_paranoid"),
            tracer: status.flatMap { $0.tracer == 0 ? nil : $0.tracer }
        )
    }

    /// Returns the label in a text of /proc/<pid>/attr/current; `nil` if the process is not confined.
    static func securityLabel(_ text: String?) -> String? {
        // SELinux ends it with a zero byte, and AppArmor with a line feed.
        let label = text.map { firstLine($0).prefix { $0 != "\0" } } ?? ""
        return label.isEmpty || label == "unconfined" ? nil : String(label)
    }

    /// Tries the sources of a diagnosis.
    ///
    /// - Parameter thread: The directory of a thread that waits, such as `/proc/self/task/4700`.
    /// - Returns: The outcomes.
    package static func sources(thread: String) -> [Capabilities.FeatureName: Capabilities.Outcome] {
        var outcomes: [Capabilities.FeatureName: Capabilities.Outcome] = [:]
        for file in ThreadFile.allCases {
            switch file.read(in: thread) {
            case .shown: outcomes[file.feature] = .works()
            case .hidden: outcomes[file.feature] = .missing("it does not show its value")
            case .missing(let error): outcomes[file.feature] = .missing(String(cString: strerror(error)))
            }
        }
        outcomes[.pressure] = Pressure.current() == nil ? .missing() : .works()
        outcomes[.throttling] = CPUQuota.isReadable ? .works() : .missing()
        outcomes[.steal] = CPUSteal().hasValues ? .works() : .missing()
        outcomes[.bootID] = ProcessIdentity.current() == nil ? .missing() : .works()
        return outcomes
    }

    private static func number(_ path: String) -> Int? {
        guard let text = readSmallFile(path) else { return nil }
        return Int(firstLine(text))
    }

    /// Converts a C string in a fixed array, such as a field of uname(2).
    private static func string<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

extension ThreadFile {
    /// The feature that needs the file.
    fileprivate var feature: Capabilities.FeatureName {
        switch self {
        case .syscall: .syscall
        case .wchan: .waitChannel
        case .schedstat: .schedstat
        case .stat: .stat
        case .status: .status
        case .stack: .kernelStack
        }
    }
}
