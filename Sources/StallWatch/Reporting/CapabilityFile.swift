import StallReports

/// A file that lasts as long as the monitor and has no name: `stallwatch doctor` reads it in /proc/<pid>/fd.
///
/// It tells where the reports are, and never outlives the process whose capabilities it states.
final class CapabilityFile: Sendable {
    private let file: UnnamedFile

    /// Writes the file into the report directory; `nil` if that fails.
    init?(_ capabilities: Capabilities, in directory: String) {
        guard let file = UnnamedFile(capabilities.jsonData(), named: Capabilities.fileName, in: directory) else {
            return nil
        }
        self.file = file
    }
}
