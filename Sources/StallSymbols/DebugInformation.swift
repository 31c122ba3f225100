internal import CSymbols
import Glibc

/// The functions, lines and inlined functions of one ELF file; the only file that knows of CSymbols.
final class DebugInformation {
    /// Why there is none, or not all of it, in words to follow "no lines: ".
    enum UnavailableReason: String, Error {
        case absent = "no debug information was found"
        case noLibrary = "libdw.so.1 is not installed, or the executable is static and cannot load it"
        case unreadable = "the debug information cannot be read"
        case damaged = "the debug information is damaged"
        case compression = "the debug information is compressed in a way that the installed libdw does not know"
        case tooLarge = "the debug information is larger than the memory limit"
        case split = "the debug information is in a separate .dwo file"
        case outOfTime = "the time limit was reached"
        /// It is there, and does not cover the address.
        case notCovered = "the debug information does not cover it"
        case noMemory = "there is no memory for the debug information"

        var reason: String { rawValue }
    }

    /// What libdw is given: DWARF 4 and 5, without what only debuggers need (variables, macros, name indices).
    private static let sectionNames = [
        ".debug_info", ".debug_abbrev", ".debug_line", ".debug_line_str", ".debug_str", ".debug_str_offsets",
        ".debug_addr", ".debug_ranges", ".debug_rnglists", ".debug_types",
    ]

    private let image: OpaquePointer
    private let locations: UnsafeMutablePointer<csymbols_location>

    /// Copies the debug sections out of `file`; `maximumBytes` is what this object may hold at any time.
    init(file: ELFFile, maximumBytes: Int) throws(UnavailableReason) {
        guard let header = try? file.header(), let named = try? file.namedSections() else { throw .unreadable }
        guard let contents = named[".debug_info"], contents.sh_size > 0 else { throw .absent }
        // Each name is duplicated for the call, because a C structure cannot point into a Swift string.
        let wanted = Self.sectionNames.compactMap { name in named[name].map { (strdup(name), $0) } }
        defer { for (name, _) in wanted { free(name) } }
        var status = CSYMBOLS_OK
        let sections = wanted.compactMap { name, section in
            name.map {
                csymbols_section(
                    name: $0, offset: section.sh_offset, size: section.sh_size,
                    is_compressed: section.sh_flags & UInt64(SHF_COMPRESSED) != 0
                )
            }
        }
        guard
            let image = csymbols_open(
                file.descriptor, header.e_machine, sections, sections.count, UInt64(max(maximumBytes, 0)), &status
            )
        else { throw UnavailableReason(status) ?? .damaged }
        self.image = image
        locations = .allocate(capacity: Int(CSYMBOLS_MAX_LOCATIONS))
    }

    deinit {
        csymbols_close(image)
        locations.deallocate()
    }

    /// Loads libdw the first time, which takes about 1 ms.
    static var hasLibrary: Bool { csymbols_is_available() }

    var memoryBytes: Int { Int(clamping: csymbols_image_bytes(image)) }

    /// What runs at a virtual address, innermost first, until `deadline` in monotonic nanoseconds; empty: unknown.
    func locations(at address: UInt64, deadline: UInt64) -> (locations: [CodeLocation], unavailable: UnavailableReason?)
    {
        var count = 0
        let status = csymbols_locate(image, address, deadline, locations, &count)
        // The first `count` of the CSYMBOLS_MAX_LOCATIONS elements are set.
        let found = UnsafeBufferPointer(start: locations, count: count).map(CodeLocation.init)
        return (found, UnavailableReason(status))
    }
}

extension CodeLocation {
    fileprivate init(_ location: csymbols_location) {
        symbol = location.function.map { String(cString: $0) }
        directory = location.directory.map { String(cString: $0) }
        let path = Self.path(location.file, in: directory)
        // The compiler's name for code that no source has: no file of that name is to be looked for.
        file = path.flatMap { $0.hasSuffix("<compiler-generated>") ? nil : $0 }
        line = location.line == 0 || file == nil ? nil : Int(location.line)
        column = location.column == 0 || line == nil ? nil : Int(location.column)
        isInlined = location.is_inlined
        isArtificial = location.is_artificial
        if let path = Self.path(location.declaration_file, in: directory), location.declaration_line > 0,
            !path.hasSuffix("<compiler-generated>")
        {
            declaration = Declaration(file: path, line: Int(location.declaration_line))
        }
    }

    private static func path(_ file: UnsafePointer<CChar>?, in directory: String?) -> String? {
        file.map { sourcePath(String(cString: $0), compiledIn: directory) }
    }
}

extension DebugInformation.UnavailableReason {
    fileprivate init?(_ status: csymbols_status) {
        switch status {
        case CSYMBOLS_OK: return nil
        case CSYMBOLS_NO_LIBRARY: self = .noLibrary
        case CSYMBOLS_UNREADABLE: self = .unreadable
        case CSYMBOLS_COMPRESSION: self = .compression
        case CSYMBOLS_TOO_LARGE: self = .tooLarge
        case CSYMBOLS_NO_MEMORY: self = .noMemory
        case CSYMBOLS_NOT_COVERED: self = .notCovered
        case CSYMBOLS_SPLIT: self = .split
        case CSYMBOLS_OUT_OF_TIME: self = .outOfTime
        default: self = .damaged
        }
    }
}
