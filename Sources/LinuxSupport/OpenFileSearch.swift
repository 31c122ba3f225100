import Glibc

/// A descriptor of some process that refers to a wanted file.
package struct OpenDescriptor: Equatable, Sendable {
    package var process: Int32
    package var number: Int32
    package var isReadable, isWritable: Bool
    /// The text of /proc/<pid>/fdinfo/<fd>.
    package var info: String

    /// Creates a descriptor from the text of its file in fdinfo (proc_pid_fdinfo(5)); `nil` if the text lacks the flags.
    package init?(process: Int32, number: Int32, info: String) {
        var cursor = ByteCursor(info)
        guard cursor.skip(pastLinePrefix: "flags:"), let octal = cursor.word(), let flags = Int32(octal, radix: 8)
        else { return nil }
        (self.process, self.number, self.info) = (process, number, info)
        isReadable = flags & O_ACCMODE != O_WRONLY
        isWritable = flags & O_ACCMODE != O_RDONLY
    }
}

/// A bounded search for processes with an open file: reads links and text in /proc of the same user, opens no file.
package struct OpenFileSearch: Equatable, Sendable {
    package static let maximumProcesses = 2_000
    /// The longest time on a CPU for one search, in nanoseconds: on a busy machine it is late, and not cut.
    package static let maximumTime: UInt64 = 50_000_000
    package static let maximumFound = 64

    package private(set) var found: [OpenDescriptor] = []
    /// The number of processes that do not show their descriptors.
    package private(set) var refused = 0
    /// Whether a bound has ended the search.
    package private(set) var isCut = false

    /// Searches the processes `first`, then all `others`, for descriptors with a link, such as `pipe:[4711]` or a path.
    package init(for link: String, first: [Int32], others: Bool = true) {
        let end = threadTimeNow() + Self.maximumTime
        let all = others ? (directoryEntries("/proc") ?? []).compactMap { Int32($0.name) } : []
        let known = Set(first)
        // The newest processes next: a pipe's other end is often a child's.
        let order = first + all.filter { !known.contains($0) }.sorted(by: >)
        isCut = order.count > Self.maximumProcesses
        for process in order.prefix(Self.maximumProcesses) {
            guard let entries = directoryEntries("/proc/\(process)/fd", until: end) else {
                if errno == EACCES { refused += 1 }
                continue
            }
            // Of a process with very many descriptors, the list alone takes longer.
            guard threadTimeNow() < end else {
                isCut = true
                return
            }
            for number in entries.compactMap({ Int32($0.name) }) {
                guard threadTimeNow() < end, found.count < Self.maximumFound else {
                    isCut = true
                    return
                }
                guard readLink("/proc/\(process)/fd/\(number)") == link,
                    let info = readSmallFile("/proc/\(process)/fdinfo/\(number)"),
                    let descriptor = OpenDescriptor(process: process, number: number, info: info)
                else { continue }
                found.append(descriptor)
            }
        }
    }
}
