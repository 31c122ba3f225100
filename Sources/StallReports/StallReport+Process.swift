extension StallReport {
    /// The program that stalled.
    ///
    /// Holds no arguments and no environment.
    public struct ProcessDescription: Codable, Sendable, Equatable {
        /// The executable's file name.
        public var name: String
        /// The process id.
        public var pid: Int32
        /// When the process was started, to 1/100 s.
        public var startedAt: Timestamp?
        /// The same in clock ticks since the boot, which never shifts when the clock is set.
        public var startTicks: UInt64?
        /// The executable's path; empty when it cannot be found out.
        public var executable: String
        /// The machine's architecture, such as `x86_64`.
        public var architecture: String
        /// The distribution, such as `Debian GNU/Linux 12 (bookworm)`.
        public var operatingSystem: String?
        /// The kernel's release.
        public var kernel: String
        /// The host's name.
        public var hostname: String
        /// The kernel's id of this boot: with pid and start time it names a process for ever.
        public var bootID: String?

        package init(
            name: String,
            pid: Int32,
            startedAt: Timestamp? = nil,
            startTicks: UInt64? = nil,
            executable: String,
            architecture: String,
            operatingSystem: String? = nil,
            kernel: String,
            hostname: String,
            bootID: String? = nil
        ) {
            self.name = name
            self.pid = pid
            self.startedAt = startedAt
            self.startTicks = startTicks
            self.executable = executable
            self.architecture = architecture
            self.operatingSystem = operatingSystem
            self.kernel = kernel
            self.hostname = hostname
            self.bootID = bootID
        }
    }
}
