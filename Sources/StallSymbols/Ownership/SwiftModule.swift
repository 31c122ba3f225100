/// The module that a Swift function was written in, by its mangled name.
package enum SwiftModule {
    /// The toolchain's modules.
    static let ofToolchain: Set<String> = [
        "Swift", "_Concurrency", "_StringProcessing", "_RegexParser", "_Differentiation", "_Volatile", "Cxx",
        "CxxStdlib", "Distributed", "Observation", "Synchronization", "Runtime", "RegexBuilder", "Dispatch",
        "Foundation", "FoundationEssentials", "FoundationInternationalization", "FoundationNetworking",
        "FoundationXML", "CoreFoundation", "Glibc", "Musl", "__C", "__C_Synthesized", "XCTest", "Testing",
        "_FoundationCollections", "SwiftOnoneSupport", "_Builtin_float",
    ]
    /// The toolchain's modules, and our own.
    static let ofLibraries = ofToolchain.union([
        "StallWatch", "StallSymbols", "StallReports", "StackCapture", "StallWatchTesting",
    ])

    /// The module that a Swift function was written in, or `nil` for a function of another language.
    ///
    /// Thunks between functions' types belong to the standard library.
    package static func of(_ symbol: String) -> String? {
        guard symbol.hasPrefix("$s") || symbol.hasPrefix("$S") else { return nil }
        let owner = contextModule(of: symbol.utf8.dropFirst(2))
        // The name of a member of `extension Array` in the app begins with Array's module, and only the long form tells. The
        // mangled form has the operator E then (Mangling.rst: `context ::= context module 'E'`).
        guard symbol.utf8.contains(UInt8(ascii: "E")),
            let name = Demangler.longName(symbol), let extended = extendingModule(in: name)
        else { return owner }
        return extended
    }

    /// The module that a mangled name begins with (Mangling.rst: `module ::= identifier | 's' | 'So'…`).
    ///
    /// A name in Punycode, which begins with 00, stays as it is mangled: no module of a library has one.
    private static func contextModule(of mangled: Substring.UTF8View) -> String {
        let digits = mangled.prefix { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }
        guard !digits.isEmpty, let length = Int(String(digits) ?? ""), length <= mangled.count - digits.count else {
            return "Swift"
        }
        return String(mangled.dropFirst(digits.count).prefix(length)) ?? "Swift"
    }

    /// `notes` in "(extension in notes):Swift.Array.sum() -> Swift.Int", also for a closure in it, a part of it after a
    /// suspension, and a specialization of it.
    ///
    /// Types in the name may have been declared in extensions, too: only the function's own context counts.
    private static func extendingModule(in name: String) -> String? {
        let marker = "(extension in "
        let context = name[contextStart(in: name.utf8)...]
        let words = context.utf8.prefix { $0 == UInt8(ascii: " ") || UInt8(ascii: "a")...UInt8(ascii: "z") ~= $0 }
        let declaration = context[words.endIndex...]
        guard declaration.hasPrefix(marker) else { return nil }
        return String(declaration.utf8.dropFirst(marker.utf8.count).prefix { $0 != UInt8(ascii: ")") })
    }

    /// The place after the last " in ", " of " or " for " that is not inside of parentheses: what comes before it says
    /// which part of the function it is.
    private static func contextStart(in name: String.UTF8View) -> String.Index {
        let separators = [" in ", " of ", " for "].map { Array($0.utf8) }
        var start = name.startIndex
        var depth = 0
        var last = UInt8(0)
        var index = name.startIndex
        while index < name.endIndex {
            let byte = name[index]
            switch byte {
            // Brackets do not count: a function signature specialization has more of the opening ones.
            case UInt8(ascii: "("), UInt8(ascii: "<"): depth += 1
            case UInt8(ascii: ")"): depth = max(0, depth - 1)
            // Not the end of an arrow.
            case UInt8(ascii: ">") where last != UInt8(ascii: "-"): depth = max(0, depth - 1)
            case UInt8(ascii: " ") where depth == 0:
                if let separator = separators.first(where: { name[index...].starts(with: $0) }) {
                    start = name.index(index, offsetBy: separator.count)
                }
            default: break
            }
            last = byte
            index = name.index(after: index)
        }
        return start
    }
}
