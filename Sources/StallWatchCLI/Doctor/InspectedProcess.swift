import Glibc
import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

struct InspectedProcess: Encodable, Equatable {
    let pid: Int32
    let executable: String?
    let isMonitored: Bool
    /// Whether its executable has StallWatch's functions; `nil` if it has no symbols, or too many to search.
    let hasStallWatch: Bool?
    /// The monitor's report directory, as the process sees it; `nil` if it has none.
    let reportDirectory: String?
}

extension InspectedProcess {
    init(pid: Int32, reportDirectory: String? = nil) {
        let isMonitored = Self.hasWatchdog(pid)
        self.init(
            pid: pid, executable: readLink("/proc/\(pid)/exe"), isMonitored: isMonitored,
            hasStallWatch: isMonitored ? true : Self.hasStallWatch("/proc/\(pid)/exe"),
            reportDirectory: reportDirectory)
    }

    /// The processes that the tool may see and that have a monitor, with their executables' names.
    static func monitored() -> [(pid: Int32, name: String)] {
        (directoryEntries("/proc") ?? []).compactMap { Int32($0.name) }.sorted().filter(hasWatchdog).map { pid in
            (pid, readLink("/proc/\(pid)/exe").map(fileName) ?? "a process")
        }
    }

    /// The process with this id; or the only one with a monitor that the tool may ask, of those with this name.
    static func pid(
        of word: String?, among monitored: () -> [(pid: Int32, name: String)] = monitored,
        mayAsk: (Int32) -> Bool = mayAsk
    ) throws(CommandFailure) -> Int32 {
        if let pid = word.flatMap({ Int32($0) }) { return pid }
        let all = monitored().filter { word == nil || $0.name == word }
        let own = all.filter { mayAsk($0.pid) }
        // Of other users' processes, the failure says what they are.
        let found = own.isEmpty ? all : own
        guard let only = found.first else {
            throw CommandFailure(.nothing, "No process\(word.map { " named '\($0)'" } ?? "") has a monitor.")
        }
        guard found.count == 1 else {
            let list = found.map { "\($0.pid) (\($0.name))" }.joined(separator: ", ")
            throw CommandFailure(.usage, "\(found.count) processes have a monitor: give one of \(list).")
        }
        return only.pid
    }

    /// Whether a process is the tool's user's, or the tool is root's.
    ///
    /// Of others /proc shows the monitor, too, but no socket.
    static func mayAsk(_ pid: Int32) -> Bool {
        guard geteuid() != 0 else { return true }
        let status = readSmallFile("/proc/\(pid)/status").flatMap(ProcessStatus.init)
        return status?.effectiveUser == geteuid()
    }

    /// Reads the status of a process; throws if there is none, or the tool may not read its files.
    static func status(of pid: Int32) throws(CommandFailure) -> ProcessStatus {
        guard !isProcForeign else {
            throw CommandFailure(
                .nothing,
                "/proc belongs to another PID namespace, so it shows process \(pid) under another id: mount this one's own."
            )
        }
        // Signal 0 only checks: /proc may hide the processes of other users (hidepid, proc(5)).
        guard kill(pid, 0) == 0 || errno == EPERM else { throw CommandFailure(.nothing, "There is no process \(pid).") }
        guard let status = readSmallFile("/proc/\(pid)/status").flatMap(ProcessStatus.init) else {
            throw CommandFailure(
                .noPermission, "Process \(pid) is another user's: run the tool as that user or as root."
            )
        }
        guard status.process == pid else {
            throw CommandFailure(
                .nothing, "\(pid) is a thread of process \(status.process): give the id of the process."
            )
        }
        guard geteuid() == 0 || geteuid() == status.effectiveUser else {
            throw CommandFailure(
                .noPermission,
                "Process \(pid) belongs to user \(status.effectiveUser): run the tool as that user or as root."
            )
        }
        guard ProcessIdentity.isRunning(pid) else { throw CommandFailure(.nothing, "Process \(pid) has ended.") }
        return status
    }

    /// Whether a process shows its open files: those of one that has changed its user or has capabilities are root's.
    static func showsFiles(_ pid: Int32) -> Bool { directoryEntries("/proc/\(pid)/fd") != nil }

    /// The words for a process that does not show its open files.
    static func hidesFiles(_ pid: Int32) -> String {
        "Process \(pid) does not show its open files: run the tool as root"
    }

    /// Returns whether there is a process that /proc does not show: hidepid (proc(5)) and security modules hide some.
    static func isHidden(_ pid: Int32) -> Bool {
        readSmallFile("/proc/\(pid)/stat") == nil && (kill(pid, 0) == 0 || errno != ESRCH)
    }

    /// Returns whether a monitor's watchdog runs in the process; `false` if its threads are hidden.
    static func hasWatchdog(_ pid: Int32) -> Bool {
        RunningProcess.hasThread(named: Capabilities.watchdogThread, in: pid)
    }

    var notMonitored: CommandFailure {
        let advice =
            switch hasStallWatch {
            case true?: "StallWatch is in its executable, but no monitor runs"
            case false?: "StallWatch is not in its executable"
            case nil: "no watchdog runs in it, and its executable does not show whether it has StallWatch"
            }
        return CommandFailure(.nothing, "Process \(pid) is not monitored: \(advice).")
    }

    private static func hasStallWatch(_ executable: String) -> Bool? {
        guard let file = try? ELFFile(path: executable), file.hasSymbolTable,
            // Swift's mangling of the module StallWatch.
            let functions = try? file.functions(where: { $0.hasPrefix("$s10StallWatch") })
        else { return nil }
        return !functions.isEmpty
    }
}

extension Diagnosis {
    /// What the monitor in a process finds; without a control socket, what /proc shows, unless the monitor has to prove itself.
    init(ofProcess pid: Int32, proves: Bool) throws(CommandFailure) {
        let status = try InspectedProcess.status(of: pid)
        var client = ControlClient(pid: pid)
        client.knownPath = client.socketPath
        let answer = client.knownPath == nil && !proves ? nil : try client.answer(to: .capabilities)
        if proves, let warning = Self.warning(ofQuota: CPUQuota.limit(ofProcess: pid), of: pid) {
            StandardError.write(warning)
        }
        let proof = proves ? try client.answer(to: .proof).proof : nil
        self.init(
            capabilities: answer?.capabilities
                ?? Capabilities(environment: HostProbe.environment(of: pid, status), features: []),
            source: answer?.capabilities == nil ? .outside : .monitor,
            process: InspectedProcess(pid: pid, reportDirectory: answer?.reportDirectory), cost: answer?.cost,
            proof: proof)
    }

    /// The line that says how long a proof may take; `nil` unless a quota leaves less than one CPU.
    static func warning(ofQuota limit: Double?, of pid: Int32) -> String? {
        guard let limit, limit < 1 else { return nil }
        return "Process \(pid) has a quota of \(limit.percent) of a CPU: a proof may take ten seconds.\n"
    }

    static func ofTool() -> Diagnosis {
        var outcomes = HostProbe.sources()
        outcomes.merge(CaptureProbe.outcomes()) { $1 }
        outcomes[.libdw] = SymbolProbe(executable: "/proc/self/exe").libdw(isLoaded: true)
        let others = Capabilities.Outcome.notTried("the program's own: use stallwatch doctor with its process id")
        let names = [Capabilities.FeatureName.symbols, .debugInformation, .flush, .context, .pinnedThreads]
        for name in names { outcomes[name] = others }
        return Diagnosis(capabilities: Capabilities(HostProbe.environment(), outcomes), source: .tool)
    }
}
