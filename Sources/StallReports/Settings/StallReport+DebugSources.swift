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
}
