/// A function that runs at an address, and the place in its source.
package struct CodeLocation: Sendable, Equatable {
    /// The mangled name.
    var symbol: String?
    /// The source file as the compiler recorded it: an absolute path, as a rule.
    var file: String?
    /// From 1.
    ///
    /// Where the compiler made code that stands for no line: the one before it in the same function.
    var line: Int?
    /// From 1.
    var column: Int?
    /// Where the function is declared; `nil` for one that the compiler made.
    var declaration: Declaration?
    /// The directory that the compiler ran in: with Swift packages, the root package's.
    var directory: String?
    /// Whether the function was inlined into the next location's.
    var isInlined = false

    /// A place in a source file.
    package struct Declaration: Sendable, Equatable {
        var file: String
        var line: Int
    }
}

/// What is known of one address.
package struct CodeLookup: Sendable, Equatable {
    /// Innermost first.
    ///
    /// Functions inlined there come before the one that the address is in. Never empty.
    var locations: [CodeLocation]
    /// Why not all is known, in words, where the reason is not the whole image's.
    var reason: String?
    /// Whether the image has debug information, and that does not cover the address: the code was compiled elsewhere.
    var isOutsideDebugInformation = false
    /// Whether it was not done for want of time, so that asking again with more time may tell more.
    var isUnfinished = false

    /// Nothing is known.
    static let nothing = CodeLookup(locations: [CodeLocation()])
}

/// An ELF file that addresses are looked up in.
package struct ImageIdentity: Sendable, Hashable {
    /// The file's path when it was mapped.
    package var path: String
    /// The build ID in lower-case hexadecimal; `nil` if the file has none.
    package var buildID: String?
    /// Whether it is the executable of this process, which /proc finds even when its file has been moved or deleted.
    package var isOwnExecutable = false

    package init(
        path: String,
        buildID: String? = nil,
        isOwnExecutable: Bool = false
    ) {
        self.path = path
        self.buildID = buildID
        self.isOwnExecutable = isOwnExecutable
    }
}
