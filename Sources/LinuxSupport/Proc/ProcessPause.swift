/// The reason why no thread of another process can run.
package enum ProcessPause: Sendable, Equatable {
    /// A signal stopped it, such as SIGSTOP.
    case signal
    /// A debugger stopped it.
    case debugger
    /// Its cgroup is frozen.
    case frozen

    /// Returns why the process with the id `pid` cannot run; `nil` if it can, or if there is none.
    package static func of(_ pid: Int32) -> ProcessPause? {
        let states = (directoryEntries("/proc/\(pid)/task") ?? []).compactMap { thread in
            Int32(thread.name) == nil ? nil : readSmallFile("/proc/\(pid)/task/\(thread.name)/stat")
        }
        return ofThreads(states.compactMap { ProcessStat($0)?.state }) ?? (isFrozen(pid) ? .frozen : nil)
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
