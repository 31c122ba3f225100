import StallReports

/// Tells code that macros expand to from sources that were written.
enum MacroExpansion {
    /// How the compiler names the file of an expansion, after the mangled name of the expansion.
    ///
    /// It lies in `swift-generated-sources` of the directory for temporary files, of whatever package the code is, and may
    /// be gone (SourceManager.cpp of the Swift compiler: `dumpExpandedMacro…`).
    private static let fileName: StaticString = "/@__swiftmacro_"

    /// Returns whether the source file at `path` is an expansion of a macro.
    static func isFile(_ path: String) -> Bool { path.containsBytes(of: fileName) }
}
