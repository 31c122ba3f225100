/// The module that a Swift function was written in, by its mangled name.
enum SwiftModule {
    /// The toolchain's modules, and our own.
    static let ofLibraries: Set<String> = [
        "Swift", "_Concurrency", "_StringProcessing", "_RegexParser", "_Differentiation", "_Volatile", "Cxx",
        "CxxStdlib",
        "Distributed", "Observation", "Synchronization", "Runtime", "RegexBuilder", "Dispatch", "Foundation",
        "FoundationEssentials", "FoundationInternationalization", "FoundationNetworking", "FoundationXML",
        "CoreFoundation", "Glibc", "Musl", "__C", "__C_Synthesized", "XCTest", "Testing", "StallWatch", "StallSymbols",
        "StallReports", "StackCapture", "_FoundationCollections", "SwiftOnoneSupport", "_Builtin_float",
    ]

    /// The module that a Swift function was written in, or `nil` for a function of another language.
    ///
    /// Thunks between functions' types belong to the standard library.
    static func of(_ symbol: String) -> String? {
        guard symbol.hasPrefix("$s") || symbol.hasPrefix("$S") else { return nil }
        let owner = contextModule(of: symbol.utf8.dropFirst(2))
        // The name of a member of `extension Array` in the app begins with Array's module, and only the long form tells. The
        // mangled form has the operator E then (Mangling.rst: `context ::= context module 'E'`).
        guard ofLibraries.contains(owner), symbol.utf8.contains(UInt8(ascii: "E")),
            let name = Demangler.longName(symbol), let extended = extendingModule(in: name)
        else { return owner }
        return extended
    }

    /// The module that a mangled name begins with (Mangling.rst: `module ::= identifier | 's' | 'So'…`).
    private static func contextModule(of mangled: Substring.UTF8View) -> String {
        let digits = mangled.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        guard let first = digits.first, first != UInt8(ascii: "0"), let length = Int(String(digits) ?? ""),
            length <= mangled.count - digits.count
        else { return "Swift" }
        return String(mangled.dropFirst(digits.count).prefix(length)) ?? "Swift"
    }

    /// `notes` in "(extension in notes):Swift.Array.sum() -> Swift.Int", also behind "generic specialization <…> of ".
    private static func extendingModule(in name: String) -> String? {
        let marker = "(extension in "
        let bytes = name.utf8
        guard let parenthesis = bytes.firstIndex(of: UInt8(ascii: "(")), name[parenthesis...].hasPrefix(marker) else {
            return nil
        }
        return String(bytes[parenthesis...].dropFirst(marker.utf8.count).prefix { $0 != UInt8(ascii: ")") })
    }
}
