import LinuxSupport
import StallReports
import Glibc

/// A file that lasts as long as the monitor and has no name: `stallwatch doctor` reads it in /proc/<pid>/fd.
///
/// So it is found from outside of the program's container, tells where the reports are, and never outlives the process
/// whose capabilities it states.
final class CapabilityFile: Sendable {
    private let descriptor: Int32

    /// Writes the file into the report directory; `nil` if that fails.
    init?(_ capabilities: Capabilities, in directory: String) {
        let owner = ProcessIdentity.current() ?? ProcessIdentity(pid: getpid(), startTicks: 0, bootID: "unknown")
        let path = ReportDirectory.temporaryPath(for: Capabilities.fileName, in: directory, of: owner)
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        unlink(path)
        guard writeAll(capabilities.jsonData(), to: descriptor) == nil else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
