/// What the reporter does when a stall escalates.
package enum EscalationAction: Sendable {
    /// Calls the app's closure.
    case call(@Sendable (StallReport) -> Void)
    /// Ends the process with abort(3).
    case abort
}

/// Which code is the app's own.
///
/// The first frame of the app's own code is what a report blames: see ``StallReport/culprit``. By default that is the root
/// package's code: sources in a `checkouts` folder of the package manager are dependencies. Code of the system and of
/// the Swift toolchain is never the app's.
///
/// Where there is no debug information, the place of an image decides. In an executable that has debug information
/// elsewhere, such code is a dependency's. In an executable without any, it is the app's: there, name the app's modules. In
/// a library it is the app's if the library was installed with the executable: in the executable's folder or below it, or
/// below the folder that contains its `bin`; but never in `/tmp`, `/var/tmp` or `/dev/shm`.
public struct InAppSettings: Sendable, Equatable {
    /// Directories whose images are not the app's, besides `/lib`, `/usr/lib` and `/usr/local/lib`, also with 32 or 64 at
    /// the end, and the Swift toolchain's.
    public var excludedDirectories: [String]
    /// Swift modules that are not the app's, such as a package that is used by path.
    public var excludedModules: [String]
    /// Swift modules that are the app's wherever their sources lie, even if a module of the toolchain has the same name.
    ///
    /// Where there is no debug information, a Swift module that is not in this list is a dependency, unless the list is
    /// empty. A module in both lists is excluded.
    public var includedModules: [String]

    /// Makes a rule; all lists are empty by default.
    public init(
        excludedDirectories: [String] = [], excludedModules: [String] = [], includedModules: [String] = []
    ) {
        self.excludedDirectories = excludedDirectories
        self.excludedModules = excludedModules
        self.includedModules = includedModules
    }
}

/// The limits of a report directory.
public struct ReportQuota: Sendable, Equatable {
    /// The maximum number of reports; at least 1.
    public var reports: Int
    /// The maximum total size of the reports in bytes; at least 1 MiB.
    public var bytes: Int

    /// Creates a quota.
    ///
    /// A report takes some tens of kilobytes.
    ///
    /// - Parameters:
    ///   - reports: The maximum number of reports; 1,000 by default.
    ///   - bytes: The maximum total size in bytes; 128 MiB by default.
    public init(reports: Int = 1_000, bytes: Int = 128 << 20) {
        self.reports = reports
        self.bytes = bytes
    }
}

extension StallReport {
    /// Where names and lines come from when a report is symbolicated after the fact.
    public struct DebugSources: Sendable, Equatable {
        /// Directories with debug files or unstripped images, searched before `/usr/lib/debug`.
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

/// How addresses get their names and lines, on the monitor's own thread, never on a monitored one.
///
/// Nothing here uses the network. A frame without a name or line keeps its build ID and offset, from which
/// `stallwatch symbolicate` can add them later and elsewhere.
///
/// Lines need libdw.so.1 (package libdw1 or elfutils-libs), which is loaded with dlopen(3) when the first report is
/// made. Without it there are names. A program that never stalls never loads it; set ``names`` to never load it at all. The
/// article "Limits" says what is done about faults of libdw, which reads files inside the program.
public struct SymbolicationSettings: Sendable, Equatable {
    /// How much is looked up.
    public enum Detail: String, Sendable {
        /// Nothing: reports have build IDs and offsets.
        case none
        /// Functions, by the images' symbol tables.
        case names
        /// Functions, files, lines and inlined functions, by the debug information.
        case lines
    }

    /// How much is looked up.
    public var detail: Detail
    /// Directories with debug files, searched before `/usr/lib/debug`.
    public var debugDirectories: [String]
    /// What the debug information may hold in memory, in bytes.
    ///
    /// An image that needs more gets names only. The memory is freed when there is nothing left to report; malloc
    /// may keep some of it for the next time. Default: 512 MB. Measured: 0.6 MB for a 20 MB release executable, most of
    /// which is the standard library's and has no debug information; 22 MB for a 53 MB debug build.
    public var maximumMemoryBytes: Int
    /// How long one report may wait for its names and lines before it is written without the rest, which then
    /// follows.
    ///
    /// Default: 200 ms.
    public var timeLimit: Duration

    /// Makes settings; every value has a default.
    public init(
        detail: Detail = .lines,
        debugDirectories: [String] = [],
        maximumMemoryBytes: Int = 512 << 20,
        timeLimit: Duration = .milliseconds(200)
    ) {
        self.detail = detail
        self.debugDirectories = debugDirectories
        self.maximumMemoryBytes = maximumMemoryBytes
        self.timeLimit = timeLimit
    }

    /// No symbolication.
    public static let none = SymbolicationSettings(detail: .none)
    /// Functions only.
    public static let names = SymbolicationSettings(detail: .names)
    /// Functions, files, lines and inlined functions.
    public static let lines = SymbolicationSettings()
}
