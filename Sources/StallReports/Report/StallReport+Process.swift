extension StallReport {
    /// The process that stalled.
    ///
    /// Contains neither its arguments nor its environment.
    public struct ProcessDescription: Codable, Sendable, Equatable {
        /// The executable's file name.
        public var name: String
        /// The process id.
        public var pid: Int32
        /// The time at which the process started, precise to 1/100 s; `nil` if unknown.
        public var startedAt: Timestamp?
        /// The start time in clock ticks since the boot (field 22 of /proc/<pid>/stat).
        ///
        /// Does not change when the wall clock is set. `nil` if unknown.
        public var startTicks: UInt64?
        /// The executable's path; empty if unknown.
        public var executable: String
        /// The machine's architecture, such as `x86_64`.
        public var architecture: String
        /// The Linux distribution, such as `Debian GNU/Linux 12 (bookworm)`; `nil` if unknown.
        public var operatingSystem: String?
        /// The kernel's release, as from `uname -r`.
        public var kernel: String
        /// The host's name.
        public var hostname: String
        /// The kernel's id of the boot.
        ///
        /// Together with ``pid`` and ``startTicks`` it identifies the process permanently. `nil` if unknown.
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
