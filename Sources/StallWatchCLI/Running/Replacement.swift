import Glibc

/// A program that takes the place of this process.
struct Replacement {
    /// The path for execve(2).
    var path: String
    /// The number of the last arguments of this process that are the program's name and its arguments.
    var argumentCount: Int
    var environment: ProcessEnvironment
    var signals: InheritedSignals

    /// Becomes the program: it keeps this process's id, descriptors, terminal and current directory.
    ///
    /// - Returns: Why that failed.
    func begin() -> StartFailure {
        // The bytes of this process's own arguments: as Swift strings, those that are not UTF-8 would change.
        let count = Int(CommandLine.argc)
        let first = count - min(argumentCount, count)
        var arguments = (first..<count).map { CommandLine.unsafeArgv[$0] } + [nil]
        var entries = environment.entries.map { entry in
            entry.withUnsafeBufferPointer { bytes in
                // strndup(3) ends at a zero byte, of which an entry has none.
                bytes.withMemoryRebound(to: CChar.self) {
                    $0.baseAddress.map { strndup($0, bytes.count) } ?? strdup("")
                }
            }
        }
        entries.append(nil)
        defer { for entry in entries { free(entry) } }
        signals.restore()
        execve(path, &arguments, &entries)
        let error = errno
        return StartFailure(
            sentence: "\(path) cannot be started: \(String(cString: strerror(error)))",
            status: error == ENOENT ? StartFailure.notFound : StartFailure.notExecutable)
    }
}
