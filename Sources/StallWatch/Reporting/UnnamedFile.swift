import Glibc
import LinuxSupport

/// A file without a name in its directory, which lasts as long as this object: other programs read it in /proc/<pid>/fd.
///
/// So it is found from outside of the program's container, and never outlives the process.
final class UnnamedFile: Sendable {
    private let descriptor: Int32

    /// Writes the file; `nil` if that fails.
    ///
    /// - Parameters:
    ///   - bytes: The file's contents.
    ///   - name: The word by which a reader finds the file: its link ends with `/.<name>.<identity>.tmp (deleted)`.
    ///   - directory: The directory.
    init?(_ bytes: [UInt8], named name: String, in directory: String) {
        let owner = ProcessIdentity.current() ?? ProcessIdentity(pid: getpid(), startTicks: 0, bootID: "unknown")
        let path = ReportDirectory.temporaryPath(for: name, in: directory, of: owner)
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        unlink(path)
        guard writeAll(bytes, to: descriptor) == nil else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
