/// How addresses get their names and lines, on the monitor's own thread, never on a monitored one.
///
/// Nothing here uses the network. Whatever is left without a name or line keeps its build ID and offset, from which it
/// can be symbolicated later and elsewhere: see ``StallReport/symbolicated(with:inApp:)``.
///
/// Lines need libdw.so.1 (package libdw1 or elfutils-libs), which is loaded with dlopen(3) when the first report is
/// made; without it there are names, by code of this library's own. So a slim image needs no further package, and a
/// program that never stalls never loads it. Where `DEBUGINFOD_URLS` is set, loading libdw also loads libdebuginfod and
/// libcurl, neither of which is then used.
///
/// libdw reads the program's debug information inside the program, and a fault of libdw's would end the program as one of
/// any library would. What is done about that: libdw sees no file, but copies of sections that were checked against
/// their file, each with zeros behind it; a line table is parsed only if the most memory that a table of its size can
/// take is within the limit; time and memory are bounded; and damaged ELF and DWARF input is part of the
/// tests (200,000 mutations of debug sections passed under AddressSanitizer). Should it happen all the same, it is not
/// silent: the report is on disk before libdw is called, without the names, and the next start marks it as abandoned.
/// To keep libdw out of the process, set ``names``, and add the lines to the report elsewhere.
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
    /// Directories with debug files, looked in before `/usr/lib/debug`.
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
