import StallReports
import Synchronization

/// Tells the log what reports lack here, and keeps the capabilities where `stallwatch doctor` finds them.
final class CapabilityNotice: Sendable {
    private let probe: CapabilityProbe
    private let directory: String?
    private let reporter: Reporter
    private let file = Mutex<CapabilityFile?>(nil)

    /// Creates a notice that is not given yet.
    ///
    /// - Parameters:
    ///   - probe: Tries the capabilities.
    ///   - directory: The report directory, which receives the file; `nil` for no file.
    ///   - reporter: Forwards the notice to the log.
    init(_ probe: CapabilityProbe, directory: String?, reporter: Reporter) {
        self.probe = probe
        self.directory = directory
        self.reporter = reporter
    }

    /// Tries the capabilities, logs the missing ones, and writes the file.
    func give() {
        let capabilities = probe.capabilities(loadsLibrary: false)
        reporter.logDegradation(capabilities)
        guard let directory else { return }
        file.withLock { $0 = CapabilityFile(capabilities, in: directory) }
    }

    /// Closes the file, which then is gone.
    func withdraw() {
        file.withLock { $0 = nil }
    }
}
