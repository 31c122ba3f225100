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
    /// Whether the compiler says that no source has the function.
    var isArtificial = false
    /// Whether the function was inlined into the next location's.
    var isInlined = false

    /// A place in a source file.
    package struct Declaration: Sendable, Equatable {
        var file: String
        var line: Int
    }

    /// Returns the path of a source file that the compiler recorded as `file`, which may be relative to where it ran.
    static func sourcePath(_ file: String, compiledIn directory: String?) -> String {
        guard let directory, directory.hasPrefix("/"), !file.hasPrefix("/"), !file.hasPrefix("<") else { return file }
        return directory + "/" + file
    }
}
