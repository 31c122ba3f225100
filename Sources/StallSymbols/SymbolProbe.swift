internal import CLinux
import Glibc
package import LinuxSupport
package import StallReports

/// Tries what the names and lines of the executable's frames need.
package struct SymbolProbe {
    private let executable: String
    private let settings: SymbolicationSettings

    /// Creates a probe of an executable such as `/proc/self/exe`; what the settings do not ask for is not tried.
    package init(executable: String, settings: SymbolicationSettings = .lines) {
        self.executable = executable
        self.settings = settings
    }

    /// Tries whether libdw can be used; unless `isLoaded`, by its file: a program that never stalls never loads libdw.
    package func libdw(isLoaded: Bool) -> Capabilities.Outcome {
        guard settings.detail == .lines else { return Self.noLines }
        if isLoaded {
            return DebugInformation.hasLibrary
                ? .works() : .missing(DebugInformation.UnavailableReason.noLibrary.reason)
        }
        let isInstalled = Self.libraryDirectories.contains { access("\($0)/libdw.so.1", R_OK) == 0 }
        return isInstalled
            ? .works("installed; loaded for the first report") : .missing("libdw.so.1 is not installed")
    }

    /// Returns whether the executable, or its debug file, has symbols and debug information, by their headers.
    package func files() -> [Capabilities.FeatureName: Capabilities.Outcome] {
        guard settings.detail != .none else {
            let outcome = Capabilities.Outcome.notTried("the configuration asks for no names")
            return [.symbols: outcome, .debugInformation: outcome]
        }
        guard let file = try? ELFFile(path: executable) else {
            let outcome = Capabilities.Outcome.missing("\(executable) cannot be read")
            return [.symbols: outcome, .debugInformation: outcome]
        }
        func outcome(_ isThere: (ELFFile) -> Bool) -> Capabilities.Outcome {
            if isThere(file) { return .works() }
            guard let debugFile = debugFile(of: file), isThere(debugFile) else { return .missing() }
            return .works(debugFile.path)
        }
        return [
            .symbols: outcome(\.hasSymbolTable),
            .debugInformation: settings.detail == .lines
                ? outcome { ((try? $0.namedSections())?[".debug_info"]?.sh_size ?? 0) > 0 } : Self.noLines,
        ]
    }

    private func debugFile(of file: ELFFile) -> ELFFile? {
        let image = ImageIdentity(
            path: readLink(executable) ?? executable, buildID: (try? file.buildID()).flatMap { $0 }
        )
        return DebugFiles(directories: settings.debugDirectories).debugFile(of: image, file: file)
    }

    private static let noLines = Capabilities.Outcome.notTried("the configuration asks for no lines")

    /// The directories in which distributions put libraries, after those of LD_LIBRARY_PATH (ld.so(8)).
    private static var libraryDirectories: [String] {
        let named = getenv("LD_LIBRARY_PATH").map { String(cString: $0).split(separator: ":").map(String.init) } ?? []
        #if arch(arm64)
            let architecture = "aarch64-linux-gnu"
        #else
            let architecture = "x86_64-linux-gnu"
        #endif
        return named + ["/usr/lib/\(architecture)", "/lib/\(architecture)", "/usr/lib64", "/lib64", "/usr/lib", "/lib"]
    }
}

/// Tries the parts of the capabilities that the library and the tool try in the same way.
package enum HostProbe {
    package static func environment() -> Capabilities.Environment {
        let status = readSmallFile("/proc/self/status").flatMap(ProcessStatus.init)
        var environment = environment(of: getpid(), status, directory: "/proc/self")
        environment.userID = geteuid()
        environment.isDumpable = LinuxSupport.isDumpable
        if isProcForeign { environment.isProcForeign = true }
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
        var environment = Capabilities.Environment(pid: process)
        environment.userID = status?.effectiveUser
        (environment.kernel, environment.architecture) = (string(system.release), string(system.machine))
        environment.seccompMode = status?.seccompMode
        environment.hasNoNewPrivileges = status?.hasNoNewPrivileges
        environment.yamaScope = number("/proc/sys/kernel/yama/ptrace_scope")
        environment.securityLabel = securityLabel(
            readSmallFile("\(directory)/attr/apparmor/current") ?? readSmallFile("\(directory)/attr/current"))
        environment.maySysPtrace = status?.maySysPtrace
        environment.perfEventParanoid = number("/proc/sys/kernel/perf_event_paranoid")
        environment.tracer = status.flatMap { $0.tracer == 0 ? nil : $0.tracer }
        return environment
    }

    /// Returns the label in a text of /proc/<pid>/attr/current; `nil` if the process is not confined.
    static func securityLabel(_ text: String?) -> String? {
        // SELinux ends it with a zero byte, and AppArmor with a line feed.
        let label = text.map { firstLine($0).prefix { $0 != "\0" } } ?? ""
        return label.isEmpty || label == "unconfined" ? nil : String(label)
    }

    /// Tries the sources of a diagnosis, on a thread of its own.
    package static func sources() -> [Capabilities.FeatureName: Capabilities.Outcome] {
        let outcomes = try? ProbedThread.run(isWaiting: true) { thread in
            sources(thread: "/proc/self/task/\(thread)").merging([.pageFaults: pageFaults(of: thread)]) { $1 }
        }
        return outcomes ?? [:]
    }

    private static func pageFaults(of thread: Int32) -> Capabilities.Outcome {
        var watch = clinux_fault_watch()
        // Under a filter a monitor does not even try it, because the filter may kill the process.
        guard let status = readSmallFile("/proc/thread-self/status"), !ProcessStatus.mayHaveFilter(status),
            clinux_watch_faults(thread, &watch)
        else { return .missing() }
        clinux_unwatch_faults(&watch)
        return .works()
    }

    /// Tries the sources of a diagnosis with the directory of a thread that waits, such as `/proc/self/task/4700`.
    static func sources(thread: String) -> [Capabilities.FeatureName: Capabilities.Outcome] {
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
        readSmallFile(path).flatMap { Int(firstLine($0)) }
    }

    /// Converts a C string in a fixed array, such as a field of uname(2).
    private static func string<Characters>(_ characters: Characters) -> String {
        withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}

extension ThreadFile {
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
