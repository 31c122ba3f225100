import StallReports

/// The output of `doctor --json`.
struct Diagnosis: Encodable, Equatable {
    /// Whose findings the capabilities are.
    enum Source: String, Encodable {
        /// The tool tried them itself.
        case tool
        /// The process's monitor tried them when it started.
        case monitor
        /// The tool read them in /proc. Most features cannot be tried from there.
        case outside
    }

    /// The process in question.
    struct Process: Encodable, Equatable {
        var pid: Int32
        /// Its executable's path; `nil` if unknown.
        var executable: String?
        /// Whether a monitor runs in it.
        var isMonitored: Bool
        /// Whether its executable has StallWatch's functions; `nil` if it does not show that.
        var hasStallWatch: Bool?
        /// The monitor's report directory, as the process sees it; `nil` if it has none.
        var reportDirectory: String?
    }

    var capabilities: Capabilities
    var source: Source
    /// `nil` for the tool itself.
    var process: Process?

    init(capabilities: Capabilities, source: Source, process: Process? = nil) {
        self.capabilities = capabilities
        self.source = source
        self.process = process
    }

    /// What is known about a process.
    init(_ process: MonitoredProcess) {
        self.init(
            capabilities: process.found?.capabilities ?? process.seenFromOutside,
            source: process.found == nil ? .outside : .monitor,
            process: Process(
                pid: process.pid, executable: process.executable, isMonitored: process.isMonitored,
                hasStallWatch: process.hasStallWatch, reportDirectory: process.found?.reportDirectory
            )
        )
    }
}
