import LinuxSupport
import Glibc

/// The files that the paths on the command line select.
struct ReportFiles {
    /// The files in the order of the command line; within a directory by name, which is by time.
    private(set) var files: [ReportFile] = []
    /// Other JSON files below the directories, such as statistics.
    private(set) var others: [String] = []
    /// Unreadable directories below the given ones, with the reason.
    private(set) var faults: [(path: String, reason: String)] = []

    /// - Throws: When a path of the command line cannot be read.
    init(paths: [String]) throws(CommandFailure) {
        for path in paths {
            if path == "-" {
                files.append(ReportFile(path: path, kind: .stream, size: 0))
                continue
            }
            guard let status = FileStatus(path: path) else { throw CommandFailure(reading: path, errno: errno) }
            if status.isDirectory {
                guard search(path) else { throw CommandFailure(reading: path, errno: errno) }
            } else {
                let kind = status.isRegular ? Self.kind(of: path) : .stream
                guard access(path, R_OK) == 0 else {
                    throw CommandFailure(reading: path, errno: errno)
                }
                files.append(ReportFile(path: path, kind: kind, size: status.size))
            }
        }
    }

    /// Whether a file in a directory is a report's: other programs' files may be next to it.
    static func isReport(_ name: String) -> Bool { name.hasPrefix("stall-") && name.hasSuffix(".json") }

    /// Whether a file has one report per line: `stalls.ndjson`, and `stalls.ndjson.1`, into which it is rotated.
    static func hasLines(_ name: String) -> Bool {
        [".ndjson", ".jsonl"].contains { name.hasSuffix($0) || name.contains("\($0).") }
    }

    private static func kind(of path: String) -> ReportFile.Kind {
        let name = fileName(path)
        if hasLines(name) { return .lines }
        return name.hasSuffix(".json") ? .report : .stream
    }

    /// Adds the files of a directory and of those below it.
    ///
    /// Symbolic links to directories are not followed: they may form a cycle. Returns whether it could be read.
    private mutating func search(_ directory: String) -> Bool {
        guard let entries = directoryEntries(directory) else { return false }
        let prefix = directory.hasSuffix("/") ? directory : directory + "/"
        for entry in entries.sorted(by: { $0.name < $1.name }) where !entry.name.hasPrefix(".") {
            let (name, type) = (entry.name, entry.type)
            let path = prefix + name
            let isReport = Self.isReport(name) || Self.hasLines(name)
            // Some file systems do not report the type.
            let isJSON = name.hasSuffix(".json")
            guard isReport || isJSON || type == DT_DIR || type == DT_UNKNOWN, let status = FileStatus(path: path)
            else { continue }
            if status.isDirectory {
                guard !isSymbolicLink(path), !search(path) else { continue }
                faults.append((path, String(cString: strerror(errno))))
            } else if isReport, status.isRegular {
                files.append(ReportFile(path: path, kind: Self.kind(of: path), size: status.size))
            } else if isJSON, status.isRegular {
                others.append(path)
            }
        }
        return true
    }

    private func isSymbolicLink(_ path: String) -> Bool {
        var byte: CChar = 0
        return readlink(path, &byte, 1) >= 0
    }
}
