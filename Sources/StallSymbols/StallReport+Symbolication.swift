public import StallReports

extension StallReport {
    /// Where names and lines come from when a report is symbolicated after the fact.
    public struct DebugSources: Sendable, Equatable {
        /// Directories with debug files or unstripped images, looked in before `/usr/lib/debug`.
        ///
        /// Files are found by build ID (`.build-id/ab/cdef.debug`), by the name in `.gnu_debuglink`, and by the image's
        /// own name or path, with or without `.debug`. A file with another build ID is never used.
        public var directories: [String]
        /// Whether the debuginfod servers that the environment names (`DEBUGINFOD_URLS`) are asked for what no
        /// directory has.
        ///
        /// Off by default: it uses the network.
        public var usesDebuginfod: Bool
        /// How long the call may take, servers included.
        ///
        /// What is not done by then stays as it was. Servers are not asked in the last second: that is how long it may
        /// take to notice that one does not answer. Default: 60 s.
        public var timeLimit: Duration
        /// What debug information may hold in memory, in bytes.
        ///
        /// Default: 4 GB.
        public var maximumMemoryBytes: Int

        /// Makes the sources; every value has a default.
        public init(
            directories: [String] = [],
            usesDebuginfod: Bool = false,
            timeLimit: Duration = .seconds(60),
            maximumMemoryBytes: Int = 4 << 30
        ) {
            self.directories = directories
            self.usesDebuginfod = usesDebuginfod
            self.timeLimit = timeLimit
            self.maximumMemoryBytes = maximumMemoryBytes
        }
    }

    /// This report with the names and lines that can be found for its frames, on any machine and at any time later.
    ///
    /// Frames are looked up by their images' build IDs and their offsets. A frame for which nothing better is found stays as
    /// it is. The callout and the culprit follow from the names; the images say why names or lines are still missing.
    ///
    /// - Parameters:
    ///   - sources: Where to look.
    ///   - inApp: What is not the app's own code.
    /// - Returns: The report, with as much as was found.
    public func symbolicated(
        with sources: DebugSources, inApp: InAppSettings = InAppSettings()
    ) -> StallReport {
        OfflineSymbolication(sources, inApp: inApp).symbolicate(self)
    }
}

extension Sequence where Element == StallReport {
    /// These reports with the names and lines that can be found for their frames.
    ///
    /// Faster than one report after another: the data read from a file for one report is kept for the next, within the
    /// memory limit. The time limit applies to all reports together.
    ///
    /// - Parameters:
    ///   - sources: Where to look.
    ///   - inApp: What is not the app's own code.
    /// - Returns: As many reports, in the same order.
    public func symbolicated(
        with sources: StallReport.DebugSources, inApp: InAppSettings = InAppSettings()
    ) -> [StallReport] {
        let symbolication = OfflineSymbolication(sources, inApp: inApp)
        let deadline = symbolication.deadline
        return map { symbolication.symbolicate($0, until: deadline) }
    }
}
