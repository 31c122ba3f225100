/// A process of this machine, as /proc shows it.
package struct RunningProcess: Sendable, Equatable {
    package var id: Int32
    package var parent: Int32
    /// The command line, or the name in the kernel where there is none.
    package var command: String
    /// The state (field 3 of proc_pid_stat(5)): one letter.
    package var state: String
    /// The start time in clock ticks since the boot, which with the id identifies the process.
    package var startTicks: UInt64

    package init(id: Int32, parent: Int32, command: String, state: String, startTicks: UInt64) {
        self.id = id
        self.parent = parent
        self.command = command
        self.state = state
        self.startTicks = startTicks
    }

    /// Reads a process; `nil` if there is none with this id.
    package init?(id: Int32) {
        guard let stat = readSmallFile("/proc/\(id)/stat").flatMap(ProcessStat.init) else { return nil }
        let words = readSmallFile("/proc/\(id)/cmdline").map { $0.split(separator: "\0").joined(separator: " ") } ?? ""
        let name = readSmallFile("/proc/\(id)/comm").map(firstLine) ?? "?"
        self.init(
            id: id, parent: stat.parent, command: words.isEmpty ? "[\(name)]" : words, state: stat.state,
            startTicks: stat.startTicks
        )
    }

    /// Returns all processes that this process may see.
    package static func all() -> [RunningProcess] {
        (directoryEntries("/proc") ?? []).compactMap { Int32($0.name) }.compactMap { RunningProcess(id: $0) }
    }

    /// Returns the processes that descend from one, children before their own children.
    package static func descendants(of ancestor: Int32, among all: [RunningProcess]) -> [RunningProcess] {
        let children = Dictionary(grouping: all, by: \.parent)
        var found: [RunningProcess] = []
        var open = [ancestor]
        var seen: Set<Int32> = [ancestor]
        while let next = open.first {
            open.removeFirst()
            for child in (children[next] ?? []).sorted(by: { $0.id < $1.id }) where seen.insert(child.id).inserted {
                found.append(child)
                open.append(child.id)
            }
        }
        return found
    }
}
