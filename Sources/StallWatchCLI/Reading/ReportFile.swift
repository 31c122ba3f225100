/// A file that may contain reports.
struct ReportFile: Sendable, Equatable {
    enum Kind: Sendable {
        /// One report.
        case report
        /// One report per line.
        case lines
        /// Reports one after another: standard input, a pipe, or a file with another name.
        case stream
    }

    var path: String
    var kind: Kind
    /// In bytes; 0 if unknown before the end.
    var size: Int
}
