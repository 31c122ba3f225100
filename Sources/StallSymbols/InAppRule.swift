/// Which images are the app's own: the executable, and what lies outside the directories where systems and toolchains put
/// theirs.
///
/// A frame in such an image is still not the app's if it is code of a library that was compiled into it: a function of a
/// toolchain's Swift module (a specialised or inlined `Array.append`), of the C++ standard library, or of a system header;
/// see ``FunctionClassifier``.
package struct InAppRule {
    /// Directories whose images are never the app's.
    static let systemDirectories = [
        "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
    ]

    private let excludedDirectories: [String]

    /// - Parameters:
    ///   - settings: What the app says.
    ///   - imagePaths: The paths of the process's images, of which one tells where the toolchain's libraries are.
    package init(_ settings: InAppSettings, imagePaths: some Sequence<String>) {
        let toolchain = imagePaths.filter { $0.hasSuffix("/libswiftCore.so") }.map { directory(of: $0) }
        excludedDirectories = Self.systemDirectories + toolchain + settings.excludedDirectories
    }

    /// Whether the image at `path` is the app's.
    package func isInApp(imageAt path: String, isExecutable: Bool) -> Bool {
        if isExecutable { return true }
        guard path.hasPrefix("/") else { return false }
        return !excludedDirectories.contains { path.hasPrefix($0 + "/") }
    }
}

/// Whose function it is, by its mangled name.
enum FunctionOwner {
    /// The toolchain's modules, and our own.
    static let libraryModules: Set<String> = [
        "Swift", "_Concurrency", "_StringProcessing", "_RegexParser", "_Differentiation", "_Volatile", "Cxx",
        "CxxStdlib",
        "Distributed", "Observation", "Synchronization", "Runtime", "RegexBuilder", "Dispatch", "Foundation",
        "FoundationEssentials", "FoundationInternationalization", "FoundationNetworking", "FoundationXML",
        "CoreFoundation", "Glibc", "Musl", "__C", "__C_Synthesized", "XCTest", "Testing", "StallWatch",
    ]

    /// The module that a Swift function was written in, or `nil` for a function of another language.
    ///
    /// Thunks between functions' types belong to the standard library.
    static func swiftModule(of symbol: String) -> String? {
        guard symbol.hasPrefix("$s") || symbol.hasPrefix("$S") else { return nil }
        let owner = contextModule(of: symbol.utf8.dropFirst(2))
        // `extension Array` in the app begins with Array's module all the same; only the long form tells.
        guard libraryModules.contains(owner), let name = Demangler.longName(symbol),
            let extended = extendingModule(in: name)
        else { return owner }
        return extended
    }

    /// Whether it is of the C++ standard library, by the Itanium ABI's abbreviations for `std`.
    static func isStandardCxx(_ symbol: String) -> Bool {
        ["_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx", "_ZNSa", "_ZNSs", "_ZNKSs"]
            .contains { symbol.hasPrefix($0) }
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

/// The part of a path before its last slash.
private func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "" }
    return String(path[..<slash])
}
