/// The place that a report was read from.
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
