import ArgumentParser
import Glibc
import LinuxSupport
import StallReports
import TextOutput

struct SourceOptions: ParsableArguments {
    @Flag(inversion: .prefixedNo, help: "Show source lines.")
    var source = true

    @Option(
        parsing: .unconditionalSingleValue,
        help: ArgumentHelp(
            "A directory with source files, beside the working directory, also of another checkout than the report's. Can be "
                + "repeated.", valueName: "dir"))
    var sourceRoot: [String] = []

    func validate() throws {
        for path in sourceRoot where FileStatus(path: path)?.isDirectory != true {
            throw ValidationError("--source-root: '\(path)' is not a directory.")
        }
    }

    var files: SourceFiles { source ? SourceFiles(below: ["."] + sourceRoot) : SourceFiles(below: []) }
}

/// The source files that may be shown: a report may name any file of this machine as its source.
struct SourceFiles: Sendable {
    static let suffixes: Set = [
        "swift", "c", "h", "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "inl", "ipp", "m", "mm", "s", "S", "rs",
    ]
    static let maximumBytes = 8 << 20
    /// A report may name a path with thousands of parts.
    private static let maximumEnds = 32

    private let roots: [String]

    init(below directories: [String]) { roots = directories.compactMap(resolvedPath) }

    /// Returns no lines if the file is not below the directories, or is too large.
    ///
    /// A relative path is looked for in each directory, and so are the ends of an absolute one, the longest first: it may be
    /// of another checkout.
    func lines(of path: String) -> [Substring] {
        var candidates = [path]
        if path.hasPrefix("/") {
            let parts = path.split(separator: "/")
            // A name alone says too little: most packages have a main.swift.
            let ends = parts.indices.dropLast().suffix(Self.maximumEnds).map { parts[$0...].joined(separator: "/") }
            candidates += ends.flatMap { end in roots.map { $0 + "/" + end } }
        } else {
            candidates = roots.map { $0 + "/" + path }
        }
        for file in candidates.compactMap(resolvedPath) where isShown(file) {
            guard let bytes = try? FileReader.contents(of: file, limit: Self.maximumBytes) else { continue }
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
        }
        return []
    }

    private func isShown(_ file: String) -> Bool {
        guard let point = file.utf8.lastIndex(of: UInt8(ascii: ".")),
            Self.suffixes.contains(String(decoding: file.utf8[file.utf8.index(after: point)...], as: UTF8.self))
        else { return false }
        return roots.contains { root in file.utf8.starts(with: (root == "/" ? root : root + "/").utf8) }
    }
}

struct SourceExcerpt {
    var first: Int
    var place: Int
    var lines: [String]

    /// Cuts out a line with those before and after it; `nil` if the file has no such line: it may be of another version.
    init?(_ lines: [Substring], around number: Int, context: Int = 3) {
        guard number > 0, lines.indices.contains(number - 1) else { return nil }
        let begin = max(number - 1 - context, 0)
        let end = min(number - 1 + context, lines.count - 1)
        first = begin + 1
        place = number - 1 - begin
        self.lines = lines[begin...end].map { String($0).printable }
    }

    /// The lines with their numbers and a mark at the place's own, without the indentation that all have.
    var numberedLines: [String] {
        let width = String(first + lines.count - 1).count
        let written = lines.filter { line in line.contains { $0 != " " } }
        let indentation = written.map { line in line.prefix { $0 == " " }.count }.min() ?? 0
        return lines.enumerated().map { index, words in
            let number = String(first + index).padded(to: width, .right)
            return "\(index == place ? ">" : " ") \(number) │ \(words.dropFirst(indentation))"
        }
    }
}

extension ReportView {
    private typealias Row = (text: String, style: Terminal.Style)

    /// The source of a lock's owner stands beside the waiter's, on narrower terminals below it.
    private static let columnsForTwo = 72
    /// The columns of both where lines have no limit.
    private static let unlimitedColumns = 120

    /// The source around the culprit and, for a lock, that of its owner.
    func source(context: Int = 3) -> String {
        let other = report.cause?.lock?.owners.first { $0.thread.id != report.loop.thread?.id }
        let held = other.flatMap { report.frame(of: $0) }
        let owner = rows(
            report.cause?.lock?.kind == .threadJoin ? "awaited: " : "holds it: ", held?.file, held?.line, context)
        let culprit = report.culprit
        let waiter = rows(owner.isEmpty ? "" : "waits: ", culprit?.file, culprit?.line, context)
        func cell(_ row: Row, _ width: Int, padded: Int = 0) -> String {
            terminal.style(row.text.truncated(to: width).padded(to: padded), row.style)
        }
        let columns = terminal.width ?? Self.unlimitedColumns
        guard !owner.isEmpty, !waiter.isEmpty, columns >= Self.columnsForTwo else {
            return (waiter + owner).map { cell($0, terminal.width ?? .max) + "\n" }.joined()
        }
        let half = (columns - 2) / 2
        return (0..<max(waiter.count, owner.count)).map { row in
            let left = row < waiter.count ? waiter[row] : ("", .faint)
            let right = row < owner.count ? owner[row] : ("", .faint)
            return cell(left, half, padded: half + 2) + cell(right, half) + "\n"
        }.joined()
    }

    private func rows(_ title: String, _ file: String?, _ line: Int?, _ context: Int) -> [Row] {
        guard let file, let line,
            let excerpt = SourceExcerpt(sources.lines(of: file), around: line, context: context)
        else { return [] }
        let lines = excerpt.numberedLines.enumerated().map { ($1, $0 == excerpt.place ? Terminal.Style.bold : .faint) }
        return [(title + sourcePlace(file, line).printable, .bold)] + lines
    }
}
