import Glibc

/// The permanent identity of a process on all hosts: the kernel reuses pids, and each PID namespace has its own.
package struct ProcessIdentity: Sendable, Hashable {
    package var pid: Int32
    /// The start time in clock ticks since the boot (field 22 of /proc/<pid>/stat), whatever the wall clock.
    package var startTicks: UInt64
    /// The number of the PID namespace that ``pid`` belongs to; empty if unknown.
    package var pidNamespace: String
    /// The kernel's id of the boot, hexadecimal digits and dashes; empty if unknown.
    package var bootID: String
    /// The host's name in letters, digits and dashes; a container has its own.
    package let host: String

    /// Returns the identity of the calling process; `nil` if /proc is not mounted, or another PID namespace's.
    package static func current() -> ProcessIdentity? { ProcessIdentity(pid: getpid()) }

    /// The calling process; without /proc, others see no more of it than its pid and its lock.
    package static var writer: ProcessIdentity { current() ?? ProcessIdentity(pid: getpid(), startTicks: 0) }

    /// Reads the identity of the process that currently has the id `pid` here; `nil` if there is none.
    package init?(pid: Int32) {
        guard let stat = Self.stat(ofRunning: pid), !Self.ownBootID.isEmpty else { return nil }
        self.init(pid: pid, startTicks: stat.startTicks)
    }

    package static func isRunning(_ pid: Int32) -> Bool { stat(ofRunning: pid) != nil }

    private static func stat(ofRunning pid: Int32) -> ProcStat? {
        // With another PID namespace's /proc, the id is another process's there.
        guard showsOwnThreads, let stat = readSmallFile("/proc/\(pid)/stat").flatMap(ProcStat.init) else { return nil }
        // A zombie counts as gone, unless only its first thread has ended (as in a program that calls dispatchMain).
        return stat.letter != "Z" || stat.threads > 1 ? stat : nil
    }

    /// Creates an identity; what is not given is the calling process's.
    ///
    /// `pidNamespace` may be as in `pid:[4026531836]`.
    package init(
        pid: Int32, startTicks: UInt64, pidNamespace: String? = Self.ownPIDNamespace, bootID: String = Self.ownBootID,
        host: String = Self.ownHost
    ) {
        self.pid = pid
        self.startTicks = startTicks
        self.pidNamespace = (pidNamespace ?? "").filter(\.isNumber)
        self.bootID = bootID
        self.host = String(host.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "-" })
    }

    /// The kernel's name of the calling process's PID namespace; `nil` if unknown.
    package static var ownPIDNamespace: String? { readLink("/proc/self/ns/pid") }
    package static let ownBootID = readSmallFile("/proc/sys/kernel/random/boot_id").map(firstLine) ?? ""
    package static var ownHost: String { readSmallFile("/proc/sys/kernel/hostname").map(firstLine) ?? "" }

    /// Whether this process runs; `nil` of one on another host, of another boot or in another PID namespace, and if this
    /// process's own namespace is not known or not shown in /proc.
    package var isAlive: Bool? {
        // A report may have lost its host's name to a redaction: the boot's id is enough.
        let here = ProcessIdentity(pid: pid, startTicks: startTicks, host: host.isEmpty ? "" : Self.ownHost)
        guard here == self, !bootID.isEmpty, !pidNamespace.isEmpty, showsOwnThreads else { return nil }
        return Self.stat(ofRunning: pid)?.startTicks == startTicks
    }
}

extension ProcessIdentity: LosslessStringConvertible {
    /// The identity in a form for file names: `4700_123456_4026531836_5c9d0e2a-…_web-3`.
    package var description: String { "\(pid)_\(startTicks)_\(pidNamespace)_\(bootID)_\(host)" }

    /// Parses the form that ``description`` produces.
    package init?(_ description: String) {
        let parts = description.split(separator: "_", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, let pid = Int32(parts[0]), let startTicks = UInt64(parts[1]) else { return nil }
        self.init(pid: pid, startTicks: startTicks, pidNamespace: parts[2], bootID: parts[3], host: parts[4])
    }
}

package struct RunningProcess: Sendable, Equatable {
    package var id: Int32
    package var parent: Int32
    /// The command line, or the name in the kernel where there is none.
    package var command: String
    /// The state (field 3 of proc_pid_stat(5)): one letter.
    package var state: String
    package var startTicks: UInt64
}

extension RunningProcess {
    /// Reads a process; `nil` if there is none with this id.
    package init?(id: Int32) {
        guard let stat = readSmallFile("/proc/\(id)/stat").flatMap(ProcStat.init) else { return nil }
        let words = readSmallFile("/proc/\(id)/cmdline").map { $0.split(separator: "\0").joined(separator: " ") } ?? ""
        let name = readSmallFile("/proc/\(id)/comm").map(firstLine) ?? "?"
        self.init(
            id: id, parent: stat.parent, command: words.isEmpty ? "[\(name)]" : words, state: stat.letter,
            startTicks: stat.startTicks
        )
    }

    /// Returns all processes that this process may see.
    package static func all() -> [RunningProcess] {
        (directoryEntries("/proc") ?? []).compactMap { Int32($0.name) }.compactMap { RunningProcess(id: $0) }
    }

    /// Returns whether a process has a thread with this name in the kernel; `false` if /proc does not show its threads.
    package static func hasThread(named name: String, in process: Int32) -> Bool {
        threads(of: "\(process)").contains { readSmallFile("/proc/\(process)/task/\($0)/comm").map(firstLine) == name }
    }

    /// Returns the processes that descend from one, children before their own children.
    package static func descendants(of ancestor: Int32, among all: [RunningProcess]) -> [RunningProcess] {
        let children = Dictionary(grouping: all, by: \.parent)
        var found: [RunningProcess] = []
        var seen: Set<Int32> = [ancestor]
        var parents = [ancestor]
        while !parents.isEmpty {
            let next = parents.flatMap { (children[$0] ?? []).sorted { $0.id < $1.id } }
            let new = next.filter { seen.insert($0.id).inserted }
            found += new
            parents = new.map(\.id)
        }
        return found
    }
}

/// The reason why no thread of another process can run.
package enum ProcessPause: Sendable, Equatable {
    case signal
    case debugger
    case frozen

    /// Returns why the process with the id `pid` cannot run; `nil` if it can, or if there is none.
    package static func of(_ pid: Int32) -> ProcessPause? {
        let states = threads(of: "\(pid)").compactMap { readSmallFile("/proc/\(pid)/task/\($0)/stat") }
        return ofThreads(states.compactMap { ProcStat($0)?.letter }) ?? (isFrozen(pid) ? .frozen : nil)
    }

    /// Returns why threads in these states cannot run (proc_pid_stat(5)); `nil` if one of them can.
    static func ofThreads(_ states: [String]) -> ProcessPause? {
        // The first thread of a program that has called dispatchMain has ended, and its process lives.
        let living = states.filter { !["Z", "X"].contains($0) }
        guard !living.isEmpty, living.allSatisfy({ ["T", "t"].contains($0) }) else { return nil }
        return living.contains("T") ? .signal : .debugger
    }

    private static func isFrozen(_ pid: Int32) -> Bool {
        guard let groups = readSmallFile("/proc/\(pid)/cgroup") else { return false }
        return freezerFiles(groups).contains { readSmallFile($0).map(saysFrozen) ?? false }
    }

    /// Returns the files that say whether a cgroup is frozen, from the text of /proc/<pid>/cgroup (cgroups(7)).
    static func freezerFiles(_ groups: String) -> [String] {
        groups.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3 else { return nil }
            if fields[0] == "0", fields[1].isEmpty { return "/sys/fs/cgroup\(fields[2])/cgroup.events" }
            return fields[1] == "freezer" ? "/sys/fs/cgroup/freezer\(fields[2])/freezer.state" : nil
        }
    }

    /// Returns whether the text of such a file says that the cgroup is frozen.
    static func saysFrozen(_ text: String) -> Bool {
        text.split(separator: "\n").contains { ["frozen 1", "FROZEN", "FREEZING"].contains($0) }
    }
}

/// The id and name of a thread of this process.
package struct ThreadIdentity: Sendable, Equatable {
    package var id: Int32
    /// The thread's name in the kernel, at most 15 bytes; `nil` if the thread has ended.
    package var name: String?

    package init(id: Int32, name: String?) {
        self.id = id
        self.name = name
    }

    package init(_ id: Int32) {
        self.init(id: id, name: readSmallFile("/proc/self/task/\(id)/comm").map(firstLine))
    }

    /// Returns the kernel ids of all threads of this process, in ascending order; none if /proc does not show them.
    package static func all() -> [Int32] { showsOwnThreads ? threads(of: "self") : [] }
}

/// Returns the ids of a process's threads, in ascending order; none if /proc does not show them.
///
/// The kernel leaves a living thread out of the list where the one before it ends meanwhile (`proc_task_readdir` in
/// fs/proc/base.c; 32 of 100,000 lists beside six threads that end), so it is read until a reading has nothing new.
package func threads(of process: String) -> [Int32] {
    threads { (directoryEntries("/proc/\(process)/task") ?? []).compactMap { Int32($0.name) } }
}

func threads(maximumLists: Int = 4, in list: () -> [Int32]) -> [Int32] {
    var ids = Set(list())
    for _ in 1..<maximumLists {
        let before = ids.count
        ids.formUnion(list())
        if ids.count == before { break }
    }
    return ids.sorted()
}
