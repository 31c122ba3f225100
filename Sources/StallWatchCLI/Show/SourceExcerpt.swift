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
            "A directory with source files, beside the working directory. Can be repeated.", valueName: "dir"))
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

    private let roots: [String]

    init(below directories: [String]) { roots = directories.compactMap(resolvedPath) }

    /// A relative path is looked for in each directory; no lines if the file is not below them, or is too large.
    func lines(of path: String) -> [Substring] {
        let candidates = path.hasPrefix("/") ? [path] : roots.map { $0 + "/" + path }
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

    /// The lines with their numbers; the place's own has a mark.
    var numberedLines: [String] {
        let width = String(first + lines.count - 1).count
        return lines.enumerated().map { index, words in
            (index == place ? "> " : "  ") + String(first + index).padded(to: width, .right) + " │ " + words
        }
    }
}

extension ReportView {
    var source: String {
        guard let culprit = report.culprit, let path = culprit.file, let number = culprit.line,
            let excerpt = SourceExcerpt(sources.lines(of: path), around: number)
        else { return "" }
        let title = terminal.style(sourcePlace(path, number).printable, .bold) + "\n"
        return title
            + excerpt.numberedLines.enumerated().map { index, line in
                terminal.style(line.truncated(to: terminal.width ?? .max), index == excerpt.place ? .bold : .faint)
                    + "\n"
            }.joined()
    }
}
