import TextOutput

/// The destination of a result: a file or standard output.
enum Destination {
    case file(OutputFile)
    case standardOutput

    /// - Parameters:
    ///   - path: `-` for standard output.
    ///   - isBinary: Whether a terminal could not show it.
    /// - Throws: A ``CommandFailure`` for a path that cannot be a file, before anything is read.
    init(_ path: String, isBinary: Bool) throws {
        guard path == "-" else {
            self = .file(try OutputFile(path: path))
            return
        }
        guard !isBinary || !Terminal.standardOutput.isTerminal else {
            throw CommandFailure(
                .cannotCreate, "This format is binary. Name a file with --output instead of writing to the terminal.")
        }
        self = .standardOutput
    }

    /// Writes everything.
    func write(_ bytes: [UInt8]) throws {
        switch self {
        case .file(let file): try file.write(bytes)
        case .standardOutput: try StandardOutput.write(bytes)
        }
    }
}
