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

/// A file to search for.
package struct WantedFile: Hashable, Sendable {
    /// Its link in /proc/<pid>/fd, such as `pipe:[4711]` or a path.
    package var link: String
    /// The device and inode numbers (``FileStatus/identity``); `nil` if the link is the same everywhere.
    ///
    /// A path is another file in another mount namespace, and the same file may have another path there. So with the
    /// identity, the file's name is enough of the link, and the identity decides.
    package var identity: [UInt64]?

    package init(link: String, identity: [UInt64]? = nil) {
        (self.link, self.identity) = (link, identity)
    }

    /// Whether it is the file at a path in /proc/<pid>/fd, which has a link with the same name, and a file in fdinfo.
    fileprivate func isAt(_ path: String, link: String, info: String) -> Bool {
        guard let identity else { return link == self.link }
        // Since Linux 5.14. Of another file the file system is not asked: it may hang.
        var inode = ByteCursor(info)
        if inode.skip(pastLinePrefix: "ino:"), inode.number() != identity.last { return false }
        return FileStatus(cachedAt: path)?.identity == identity
    }
}

/// A bounded search for processes with an open file: reads links and text in /proc of the same user, opens no file.
package struct OpenFileSearch: Equatable, Sendable {
    package static let maximumProcesses = 2_000
    /// The longest time on a CPU for one search, in nanoseconds: on a busy machine it is late, and not cut.
    package static let maximumTime: UInt64 = 50_000_000
    /// The most descriptors found of one file.
    package static let maximumFound = 64

    private var found: [WantedFile: [OpenDescriptor]] = [:]
    private var seen: Set<Int32> = []
    /// The processes that do not show their descriptors.
    package private(set) var refused: Set<Int32> = []
    /// Whether a bound has ended the search.
    package private(set) var isCut = false

    /// The descriptors found of a file.
    package subscript(file: WantedFile) -> [OpenDescriptor] { found[file] ?? [] }

    /// Whether all descriptors of processes were looked at before the search ended.
    package func hasSeen(_ processes: [Int32]) -> Bool { seen.isSuperset(of: processes) }

    /// Whether all descriptors of a process were looked at, and the process shows them.
    package func shows(_ process: Int32) -> Bool { seen.contains(process) && !refused.contains(process) }

    /// Searches the processes `first`, then all others, for descriptors of files.
    package init(for files: Set<WantedFile>, first: [Int32]) {
        let wanted = Dictionary(grouping: files) { fileName($0.link) }
        let end = threadTimeNow() + Self.maximumTime
        let all = (directoryEntries("/proc") ?? []).compactMap { Int32($0.name) }
        let known = Set(first)
        let order = first + Self.newestFirst(all.filter { !known.contains($0) }, last: Self.newestProcess())
        isCut = order.count > Self.maximumProcesses
        for process in order.prefix(Self.maximumProcesses) {
            guard let entries = directoryEntries("/proc/\(process)/fd", until: end) else {
                if errno == EACCES { refused.insert(process) }
                seen.insert(process)
                continue
            }
            // Of a process with very many descriptors, the list alone takes longer.
            guard threadTimeNow() < end else {
                isCut = true
                return
            }
            for number in entries.compactMap({ Int32($0.name) }) {
                guard threadTimeNow() < end else {
                    isCut = true
                    return
                }
                let path = "/proc/\(process)/fd/\(number)"
                guard let link = readLink(path) else {
                    // A process of the same user with more privileges shows its numbers only.
                    if errno == EACCES { refused.insert(process) }
                    continue
                }
                guard let named = wanted[fileName(link)],
                    let info = readSmallFile("/proc/\(process)/fdinfo/\(number)"),
                    let descriptor = OpenDescriptor(process: process, number: number, info: info)
                else { continue }
                for file in named where file.isAt(path, link: link, info: info) {
                    if self[file].count < Self.maximumFound {
                        found[file, default: []].append(descriptor)
                    } else {
                        isCut = true
                    }
                }
            }
            seen.insert(process)
        }
    }

    /// The process that was made last, which proc_loadavg(5) ends with; 0 if that cannot be read.
    private static func newestProcess() -> Int32 {
        readSmallFile("/proc/loadavg")?.split { $0 == " " || $0 == "\n" }.last.flatMap { Int32($0) } ?? 0
    }

    /// Orders processes by how new they are, as a pipe's other end is often a child's: numbers beyond the last one were
    /// given before the numbers began again.
    package static func newestFirst(_ processes: [Int32], last: Int32) -> [Int32] {
        processes.filter { $0 <= last }.sorted(by: >) + processes.filter { $0 > last }.sorted(by: >)
    }
}

extension Sequence where Element: Hashable {
    /// The elements without repeats, in their order.
    package var unique: [Element] {
        var known: Set<Element> = []
        return filter { known.insert($0).inserted }
    }
}
