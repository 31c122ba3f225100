import Glibc
import LinuxSupport
import StackCapture
import StallReports
import StallSymbols

/// A process, with what /proc says of it and what its monitor has found.
struct MonitoredProcess {
    /// What the monitor has left for the tool.
    struct Found {
        var capabilities: Capabilities
        var reportDirectory: String?
    }

    let pid: Int32
    /// The executable's path; `nil` if unknown.
    let executable: String?
    /// Whether a monitor's watchdog runs in it.
    let isMonitored: Bool
    /// Whether its executable has StallWatch's functions; `nil` if it has no symbols, or too many to search.
    let hasStallWatch: Bool?
    /// The findings of its monitor; `nil` without a monitor, and without a report directory.
    let found: Found?
    let seenFromOutside: Capabilities

    /// The longest file that is read, in bytes.
    private static let maximumBytes = 1 << 20

    /// - Throws: When there is no such process, or it is another user's.
    init(pid: Int32) throws(CommandFailure) {
        let directory = "/proc/\(pid)"
        let status = try Self.status(of: pid)
        self.pid = pid
        executable = readLink("\(directory)/exe")
        isMonitored = Self.hasWatchdog(pid)
        hasStallWatch = isMonitored ? true : Self.hasStallWatch("\(directory)/exe")
        found = Self.unlinkedFile(Capabilities.fileName, of: directory) { bytes, directory in
            Capabilities(jsonData: bytes).map { Found(capabilities: $0, reportDirectory: directory) }
        }
        seenFromOutside = Self.seenFromOutside(pid, status)
    }

    /// Reads the status of a process; throws if there is none, or the tool may not read its files.
    static func status(of pid: Int32) throws(CommandFailure) -> ProcessStatus {
        let directory = "/proc/\(pid)"
        guard !isProcForeign else {
            throw CommandFailure(
                .nothing,
                "/proc belongs to another PID namespace, so it shows process \(pid) under another id: mount this one's own."
            )
        }
        // Signal 0 only checks: /proc may hide the processes of other users (hidepid, proc(5)).
        let isThere = kill(pid, 0) == 0 || errno == EPERM
        guard isThere else { throw CommandFailure(.nothing, "There is no process \(pid).") }
        guard let status = readSmallFile("\(directory)/status").flatMap(ProcessStatus.init) else {
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

    /// Returns whether a monitor's watchdog runs in the process; `false` if its threads are hidden.
    static func hasWatchdog(_ pid: Int32) -> Bool {
        let directory = "/proc/\(pid)/task"
        return (directoryEntries(directory) ?? []).contains { thread in
            readSmallFile("\(directory)/\(thread.name)/comm").map(firstLine) == Capabilities.watchdogThread
        }
    }

    /// The failure for a process without a monitor.
    var notMonitored: CommandFailure {
        let advice =
            switch hasStallWatch {
            case true?: "StallWatch is in its executable, but no monitor has been started"
            case false?: "StallWatch is not in its executable"
            case nil: "no watchdog runs in it, and its executable does not show whether it has StallWatch"
            }
        return CommandFailure(.nothing, "Process \(pid) is not monitored: \(advice).")
    }

    /// Searches the open files of a process for an unlinked one that a monitor keeps.
    ///
    /// - Parameters:
    ///   - name: The word by which the file is known.
    ///   - directory: The process's directory in /proc.
    ///   - body: Receives the contents of such a file and its directory; returns `nil` if the file is another one.
    /// - Returns: The first result of `body`; `nil` if there is none.
    static func unlinkedFile<Result>(
        _ name: String, of directory: String, _ body: ([UInt8], String) -> Result?
    ) -> Result? {
        for entry in directoryEntries("\(directory)/fd") ?? [] {
            let file = "\(directory)/fd/\(entry.name)"
            guard let target = readLink(file), target.contains("/.\(name)."),
                let bytes = AtomicFile.read(file, limit: maximumBytes)
            else { continue }
            if let result = body(bytes, directoryName(target)) { return result }
        }
        return nil
    }

    private static func hasStallWatch(_ executable: String) -> Bool? {
        guard let file = try? ELFFile(path: executable), file.hasSymbolTable,
            // Swift's mangling of the module StallWatch.
            let functions = try? file.functions(where: { $0.hasPrefix("$s10StallWatch") })
        else { return nil }
        return !functions.isEmpty
    }

    private static func seenFromOutside(_ pid: Int32, _ status: ProcessStatus) -> Capabilities {
        var outcomes = SymbolProbe(executable: "/proc/\(pid)/exe").files()
        for name in Capabilities.FeatureName.known where outcomes[name] == nil {
            outcomes[name] = .notTried("only the process itself can try it")
        }
        return Capabilities(HostProbe.environment(of: pid, status), outcomes)
    }
}

/// The capabilities of a process that is started like the tool.
enum ToolCapabilities {
    static func current() -> Capabilities {
        var outcomes = HostProbe.sources()
        let captures = CaptureProbe.result(mayUsePtrace: nil)
            .features(works: { Capabilities.Outcome.works($0) }, missing: { .missing($0) }, notTried: { .notTried($0) })
        for (name, outcome) in captures { outcomes[.init(rawValue: name)] = outcome }
        outcomes[.libdw] = SymbolProbe(executable: "/proc/self/exe").libdw(isLoaded: true)
        let others = Capabilities.Outcome.notTried("the program's own: use stallwatch doctor with its process id")
        for name in [Capabilities.FeatureName.symbols, .debugInformation, .flush] { outcomes[name] = others }
        return Capabilities(HostProbe.environment(), outcomes)
    }
}
