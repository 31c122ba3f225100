/// A library of the system or of the toolchain, by its functions' names: all that shows it if it is in the executable.
package enum RuntimeLibrary: Sendable {
    case c, cxx, dispatch, swift, foundation

    /// The library that has a function with that symbol; `nil` for any other function.
    ///
    /// Names alone: an app may have a C function that begins the same. Debug information, where it tells, counts more.
    package init?(symbol: String) {
        for (library, prefixes) in Self.prefixes where prefixes.contains(where: { symbol.hasPrefix($0) }) {
            self = library
            return
        }
        // Functions of the runtime that are in no namespace: `_ZL23swift_job_runImpl…`, or static with a type of the
        // runtime's. Others with such a type are the app's: C++ sees Swift's String as `swift::String`.
        let isStatic =
            symbol.hasPrefix("_ZL") || symbol.hasPrefix("_ZZL") || symbol.prefix(18).contains("12_GLOBAL__N_1")
        let isOfRuntime =
            symbol.hasPrefix("_Z")
            && (isStatic && symbol.contains("N5swift")
                || symbol.dropFirst(3).drop(while: \.isNumber).hasPrefix("swift_"))
        if isOfRuntime {
            self = .swift
        } else if Self.isCoreFoundation(symbol) {
            self = .foundation
        } else {
            return nil
        }
    }

    /// Whether the function is of a library of the system or of the toolchain, also one written in Swift.
    package static func contains(_ symbol: String) -> Bool {
        if let module = SwiftModule.of(symbol) { return SwiftModule.ofLibraries.contains(module) }
        return RuntimeLibrary(symbol: symbol) != nil
    }

    private static let prefixes: KeyValuePairs<RuntimeLibrary, [String]> = [
        .dispatch: ["dispatch_", "_dispatch_", "__DISPATCH_", "_os_object_", "_Block_"],
        .swift: [
            "swift_", "_swift_", "__swift_", "_ZN5swift", "_ZNK5swift", "_ZNSt6__once5swift",
            "_ZN12_GLOBAL__N_15swift", "_ZZN5swift", "_ZZNK5swift", "_ZN7__swift", "_ZNK7__swift",
            "_ZN33DemanglerForRuntimeTypeResolution", "_ZN22LibPrespecializedState", "_ZN16ConformanceState",
        ],
        // ICU of Foundation: a namespace with or without its version, and C functions that end with it.
        .foundation: ["_ZN6icu_", "_ZNK6icu_", "_ZN3icu", "_ZNK3icu", "_CF", "__CF", "_NS", "__NS", "_foundation_"],
        .cxx: [
            "_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZNSa", "_ZNSs", "_ZNKSs", "__cxa_",
            "_ZN10__cxxabiv1", "_Unwind_", "__gxx_",
        ],
        .c: [
            "__libc_", "__GI_", "pthread_", "__pthread_", "___pthread_", "_dl_", "_IO_", "__lll_", "__futex_",
            "__syscall_cancel", "__internal_syscall_cancel",
        ],
    ]

    /// `CFRunLoopRunSpecific`: CoreFoundation's prefix before a capital letter and a small one, or one of its abbreviations.
    private static func isCoreFoundation(_ symbol: String) -> Bool {
        if ["CFURL", "CFUUID", "CFQSort"].contains(where: { symbol.hasPrefix($0) }) { return true }
        let capitals = UInt8(ascii: "A")...UInt8(ascii: "Z")
        return symbol.hasPrefix("CF") && symbol.utf8.dropFirst(2).prefix(2).map(capitals.contains) == [true, false]
    }
}

package enum SwiftModule {
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

    /// The module of a Swift function (of a thunk between functions' types, the standard library); `nil` for others.
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
