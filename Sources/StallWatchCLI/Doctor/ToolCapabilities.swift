import LinuxSupport
import StallReports
import StallSymbols
import Glibc

/// The capabilities of a process that is started like the tool.
///
/// The tool has no capture engine. It tries the system calls that a capture needs in child processes, and /proc on a
/// thread of its own.
enum ToolCapabilities {
    static func current() -> Capabilities {
        let sources = try? ProbedThread.run(isWaiting: true) { HostProbe.sources(thread: "/proc/self/task/\($0)") }
        var outcomes = sources ?? [:]
        let refusals = Dictionary(uniqueKeysWithValues: SystemTrial.allCases.map { ($0, $0.refusal()) })
        func outcome(_ trial: SystemTrial) -> Capabilities.Outcome {
            refusals[trial].flatMap(\.self).map { .missing($0) } ?? .works()
        }
        outcomes[.processVMReadv] = outcome(.readMemory)
        outcomes[.ptrace] = outcome(.ptrace)
        outcomes[.perf] = outcome(.sampling)
        outcomes[.pageFaults] = outcome(.pageFaults)
        outcomes[.signal] = outcomes[.ptrace] == .works() ? .notTried("not used where ptrace works") : outcome(.signal)
        outcomes[.read] = read(outcomes)
        outcomes[.libdw] = SymbolProbe(executable: "/proc/self/exe").libdw(isLoaded: true)
        let others = Capabilities.Outcome.notTried("the program's own: use stallwatch doctor with its process id")
        for name in [Capabilities.FeatureName.symbols, .debugInformation, .flush] { outcomes[name] = others }
        let environment = HostProbe.environment()
        // A monitor does not try it under a filter, which may kill, nor where it cannot know whether there is one.
        if ProcessStatus.mayHaveFilter(readSmallFile("/proc/self/status") ?? "") { outcomes[.pageFaults] = .missing() }
        return Capabilities(environment, outcomes)
    }

    /// Whether a blocked thread can be read: its system call is shown, and something shows that it has not run meanwhile.
    static func read(_ outcomes: [Capabilities.FeatureName: Capabilities.Outcome]) -> Capabilities.Outcome {
        guard outcomes[.syscall] == .works() else {
            return .missing("\(Capabilities.FeatureName.syscall.title) is missing")
        }
        guard outcomes[.schedstat] == .works() || outcomes[.status] == .works() else {
            return .missing(
                "\(Capabilities.FeatureName.schedstat.title) and \(Capabilities.FeatureName.status.title) are missing")
        }
        return .works()
    }
}
