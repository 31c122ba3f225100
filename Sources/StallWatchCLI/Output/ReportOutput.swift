import Glibc
import LinuxSupport

/// A directory that another process writes reports to, possibly from another current directory.
struct ReportOutput: Equatable {
    /// The absolute path.
    let path: String

    /// - Parameter path: The path; a relative one is one of this process's current directory.
    /// - Throws: ``CommandFailure`` if it is relative and the current directory does not exist.
    init(_ path: String) throws(CommandFailure) {
        guard let absolute = absolutePath(path) else {
            throw CommandFailure(
                .noInput, "the current directory does not exist: name one by a full path in --output")
        }
        self.path = absolute
    }

    /// Throws unless the directory can be written, or can be created in a directory that exists.
    func checkWritable() throws(CommandFailure) {
        var existing = path
        while access(existing, F_OK) != 0, errno == ENOENT, let slash = existing.lastIndex(of: "/") {
            existing = slash == existing.startIndex ? "/" : String(existing[..<slash])
        }
        guard let status = FileStatus(path: existing) else { throw CommandFailure(writing: path, errno: errno) }
        guard status.isDirectory else { throw CommandFailure(writing: path, errno: ENOTDIR) }
        guard access(existing, W_OK | X_OK) == 0 else { throw CommandFailure(writing: path, errno: errno) }
    }
}
