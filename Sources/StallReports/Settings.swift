/// What the reporter does when a stall escalates.
package enum EscalationAction: Sendable {
    case call(@Sendable (StallReport) -> Void)
    case abort
}

/// Which code is the app's own, so that a report blames it: see ``StallReport/culprit``.
///
/// By default that is the code of the root package. Not the app's are:
///
/// - the system and the Swift toolchain;
/// - dependencies: sources in a `checkouts` folder of the package manager;
/// - code without debug information, in an executable that has some for other code;
/// - libraries without debug information that were not installed with the executable, such as plug-ins. Installed with it
///   are those below its folder, or below the folder around its `bin`, except in `/tmp`, `/var/tmp` and `/dev/shm`.
///
/// In an executable without any debug information all other code is the app's: name the app's modules there.
public struct InAppSettings: Sendable, Equatable {
    /// Directories of images that are not the app's, in addition to the system's and the toolchain's.
    ///
    /// The system's are `/lib`, `/usr/lib` and `/usr/local/lib`, also with 32 or 64 at the end.
    public var excludedDirectories: [String]
    /// Swift modules that are not the app's, such as a package that is used by path.
    public var excludedModules: [String]
    /// Swift modules that are the app's wherever their sources lie, even if a module of the toolchain has the same name.
    ///
    /// If the list is not empty, a Swift module without debug information that is not in it is a dependency. A module in
    /// both lists is excluded.
    public var includedModules: [String]

    /// Creates settings; all lists are empty by default.
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

/// How the frames of a report get their names and lines, on the monitor's own thread.
///
/// ``lines`` needs libdw.so.1 (package libdw1 or elfutils-libs), which is loaded when the first report is made; without it
/// frames have functions only. Nothing uses the network. A frame without a name or line keeps its build ID and offset, with
/// which `stallwatch symbolicate` adds them later and elsewhere.
public struct SymbolicationSettings: Sendable, Equatable {
    package enum Detail: String, Sendable {
        case none, names, lines
    }

    package var detail = Detail.lines
    /// Directories with debug files, which are searched before `/usr/lib/debug`.
    public var debugDirectories: [String] = []
    /// The memory limit for debug information, in bytes; 512 MB by default.
    ///
    /// An image that needs more gets functions only. The memory is freed when there is nothing left to report.
    public var maximumMemoryBytes = 512 << 20
    /// The time for which a report waits for its names and lines; 200 ms by default.
    ///
    /// After that it is written without the rest, which follows.
    public var timeLimit = Duration.milliseconds(200)

    package init(detail: Detail = .lines) { self.detail = detail }

    /// No symbolication: frames have build IDs and offsets.
    public static let none = SymbolicationSettings(detail: .none)
    /// Functions, by the images' symbol tables; libdw is not loaded.
    public static let names = SymbolicationSettings(detail: .names)
    /// Functions, files, lines and inlined functions, by the debug information.
    public static let lines = SymbolicationSettings()
}
