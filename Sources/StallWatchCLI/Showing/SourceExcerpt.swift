import TextOutput

/// The source lines around a place.
struct SourceExcerpt {
    /// Lines shown before and after the place's own.
    static let context = 3
    /// A larger source file is not read.
    static let maximumBytes = 8 << 20

    /// The number of the first line, from 1.
    var first: Int
    /// The index of the place's own line.
    var place: Int
    var lines: [String]

    /// Cuts lines out of a source file's lines; `nil` if the file has no such line: it may be of another version.
    ///
    /// - Parameters:
    ///   - lines: The file's lines, from ``lines(of:)``.
    ///   - number: The place's line, from 1.
    init?(_ lines: [Substring], around number: Int) {
        guard number > 0, lines.indices.contains(number - 1) else { return nil }
        let begin = max(number - 1 - Self.context, 0)
        let end = min(number - 1 + Self.context, lines.count - 1)
        first = begin + 1
        place = number - 1 - begin
        self.lines = lines[begin...end].map { String($0).printable }
    }

    /// Reads the lines of a source file.
    ///
    /// - Parameter path: The path that the compiler recorded.
    /// - Returns: No lines if there is no such file here, or if it is too large.
    static func lines(of path: String) -> [Substring] {
        guard let bytes = try? FileReader.contents(of: path, limit: maximumBytes) else { return [] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    }
}
