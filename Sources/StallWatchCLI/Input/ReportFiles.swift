import Dispatch
import Glibc
import LinuxSupport
import StallReports
import Synchronization
import TextOutput

struct ReportFiles {
    /// The folder that is read without paths: that of the guides.
    static let standardFolder = "stalls"

    /// The files in the order of the command line; within a directory by name, which is by time.
    private(set) var files: [ReportFile] = []
    /// Other JSON files below the directories, such as statistics.
    private(set) var others: [String] = []
    private(set) var faults: [(path: String, reason: String)] = []
    let paths: [String]

    init(paths: [String]) throws(CommandFailure) {
        self.paths = paths
        for path in paths {
            if path == "-" {
                files.append(ReportFile(path: path, layout: .stream, size: 0))
                continue
            }
            guard let status = FileStatus(path: path) else { throw CommandFailure(reading: path, errno: errno) }
            if status.isDirectory {
                guard search(path) else { throw CommandFailure(reading: path, errno: errno) }
            } else {
                let layout = status.isRegular ? Self.layout(of: path) : .stream
                guard access(path, R_OK) == 0 else { throw CommandFailure(reading: path, errno: errno) }
                files.append(ReportFile(path: path, layout: layout, size: status.size))
            }
        }
    }

    /// How many JSON files are left out because of their names, in words; `nil` if none is.
    var leftOut: String? {
        let count = others.count { !fileName($0).hasPrefix("stall-") }
        let files = counted(count, "JSON file whose name does", "JSON files whose names do")
        return count == 0 ? nil : "Not read: \(files) not begin with stall-."
    }

    /// The given paths, or the standard folder for none; throws ``NoStalls`` if that folder does not exist yet.
    static func paths(_ given: [String]) throws(NoStalls) -> [String] {
        guard given.isEmpty else { return given }
        guard FileStatus(path: standardFolder) != nil else {
            let remark = "There is no such folder in \(resolvedPath(".") ?? ".")."
            throw NoStalls(paths: [standardFolder], remark: remark)
        }
        return [standardFolder]
    }

    /// Whether a file has one report per line: `stalls.ndjson`, and `stalls.ndjson.1` or `stalls.ndjson-20261127`, its rotations.
    static func hasLines(_ name: String) -> Bool {
        let plain = String(name.reversed().drop { "0123456789-._T".contains($0) }.reversed())
        return [".ndjson", ".jsonl"].contains { plain.hasSuffix($0) }
    }

    /// Whether a file has reports by its name, so that a search of its directory reads it.
    static func isFound(_ path: String) -> Bool {
        let name = fileName(path)
        return !name.hasPrefix(".") && (StallReport.isFileName(name) || hasLines(name))
    }

    private static func layout(of path: String) -> ReportFile.Layout {
        let name = fileName(path)
        if hasLines(name) { return .lines }
        return name.hasSuffix(".json") ? .report : .stream
    }

    /// Returns whether it could be read; does not follow symbolic links to directories, which may form a cycle.
    private mutating func search(_ directory: String) -> Bool {
        guard let entries = directoryEntries(directory) else { return false }
        let prefix = directory.hasSuffix("/") ? directory : directory + "/"
        for entry in entries.sorted(by: { $0.name < $1.name }) where !entry.name.hasPrefix(".") {
            let path = prefix + entry.name
            let isReport = Self.isFound(entry.name)
            let isJSON = entry.name.hasSuffix(".json")
            // Some file systems do not report the type.
            guard isReport || isJSON || [DT_DIR, DT_UNKNOWN].contains(entry.type), let status = FileStatus(path: path)
            else { continue }
            if status.isDirectory {
                guard readLink(path) == nil, !search(path) else { continue }
                faults.append((path, String(cString: strerror(errno))))
            } else if isReport, status.isRegular {
                files.append(ReportFile(path: path, layout: Self.layout(of: path), size: status.size))
            } else if isJSON, status.isRegular {
                others.append(path)
            }
        }
        return true
    }
}

/// There is no report: good news, and not an error.
struct NoStalls: Error, Equatable {
    let paths: [String]
    /// Why that may be no good news after all; `nil` if nothing says so.
    var remark: String?

    /// Says it, and which processes have a monitor: with their longest turns, if they can be asked.
    func text(
        _ monitored: [(pid: Int32, name: String)],
        loops: (Int32) -> [LoopStatistics]? = { (try? ControlClient(pid: $0).answer(to: .state))?.loops }
    ) -> String {
        let places = paths.map {
            $0 == "-"
                ? "standard input" : $0.hasSuffix("/") || FileStatus(path: $0)?.isDirectory == false ? $0 : "\($0)/"
        }
        let all = places.joined(separator: ", ")
        var text = "No stalls in \(all).\(remark.map { " " + $0 } ?? "")".printable + "\n"
        for process in monitored {
            let turns = (loops(process.pid) ?? []).map { loop in
                "\(loop.label): longest turn \(loop.turnDuration(quantile: 1)?.text ?? "0 ms") of \(loop.threshold.text)"
            }
            text += "\(process.name) (\(process.pid)) has a monitor".printable
            text += (turns.isEmpty ? "" : "; " + turns.joined(separator: ", ").printable) + ".\n"
        }
        return text + (monitored.isEmpty ? "No process has a monitor now.\n" : "")
    }
}

extension NoStalls {
    /// Says it on standard error.
    func write() { StandardError.write(text(InspectedProcess.monitored())) }

    /// Reads reports; for a document that a machine reads, none is no error: an empty file is neither JSON nor XML.
    static func allowed(_ isDocument: Bool, _ read: () throws -> Void) throws {
        do { try read() } catch let none as NoStalls where isDocument { none.write() }
    }
}

struct ReportFile: Sendable, Equatable {
    enum Layout: Sendable {
        case report
        case lines
        /// Reports one after another: standard input, a pipe, or a file with another name.
        case stream
    }

    var path: String
    var layout: Layout
    /// In bytes; 0 if unknown before the end.
    var size: Int
}

struct ReportOrigin: Sendable, Hashable, CustomStringConvertible {
    /// The file's path; `-` for standard input.
    var path: String
    /// The line that the report begins at, where a file may have several.
    var line: Int?

    var description: String {
        let name = path == "-" ? "standard input" : path
        return line.map { "\(name):\($0)" } ?? name
    }
}

struct ReportDocuments {
    private var files: ArraySlice<ReportFile>
    private var stream: (documents: DocumentStream, path: String)?
    private(set) var bytesRead = 0

    init(_ files: [ReportFile]) {
        self.files = files[...]
    }

    /// The next reports: as many as `reports` or `bytes` allows, and at least one; `nil` at the end.
    mutating func next(reports: Int, bytes: Int) throws(CommandFailure) -> [ReportDocument]? {
        var batch: [ReportDocument] = []
        var size = 0
        while batch.count < reports, size < bytes, let document = try next() {
            batch.append(document)
            size += document.size
        }
        bytesRead += size
        return batch.isEmpty ? nil : batch
    }

    private mutating func next() throws(CommandFailure) -> ReportDocument? {
        while true {
            if let (documents, path) = stream {
                if let document = try documents.next() {
                    return ReportDocument(
                        origin: ReportOrigin(path: path, line: document.line), content: document.bytes,
                        size: document.bytes.count
                    )
                }
                stream = nil
            }
            guard let file = files.popFirst() else { return nil }
            guard file.layout != .report else {
                return ReportDocument(origin: ReportOrigin(path: file.path), content: nil, size: file.size)
            }
            guard let reader = try? FileReader(path: file.path) else {
                // The decoding reports why, and the other files are still read.
                return ReportDocument(origin: ReportOrigin(path: file.path), content: nil, size: file.size)
            }
            stream = (DocumentStream(isLines: file.layout == .lines, read: reader.read), file.path)
        }
    }
}

struct ReportDocument: Sendable {
    var origin: ReportOrigin
    /// `nil` for a file with one report, which is read where it is decoded.
    var content: [UInt8]?
    var size: Int

    var exists: Bool { FileStatus(path: origin.path) != nil || errno != ENOENT }

    func bytes() throws(UnreadableReport) -> [UInt8] {
        guard let content else { return try FileReader.contents(of: origin.path) }
        guard content.count <= StallReport.maximumBytes else {
            throw UnreadableReport("it has more than \(StallReport.maximumBytes) bytes, the limit for a report")
        }
        return content
    }
}

extension Array where Element: Sendable {
    /// Maps the elements on all processors at once; keeps their order.
    func concurrentMap<Result: Sendable>(_ body: @Sendable (Element) -> Result) -> [Result] {
        let results = Mutex([Result?](repeating: nil, count: count))
        DispatchQueue.concurrentPerform(iterations: count) { index in
            let result = body(self[index])
            results.withLock { $0[index] = result }
        }
        return results.withLock { $0.compactMap(\.self) }
    }
}
