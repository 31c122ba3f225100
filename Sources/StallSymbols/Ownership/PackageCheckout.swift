/// Tells sources that the package manager has checked out from sources of the app.
enum PackageCheckout {
    /// The folder of the package manager's scratch directory (`.build`, `SourcePackages`) that has the dependencies' sources.
    private static let folder = "/checkouts/"

    /// Whether the source file at `path` belongs to a dependency.
    ///
    /// The compiler runs in the root package's directory. If that itself lies in a folder named `checkouts`, that folder is
    /// not the package manager's.
    static func contains(_ path: String, compiledIn directory: String?) -> Bool {
        let path = Array(path.utf8)
        let folder = Array(Self.folder.utf8)
        let directory = directory.map { Array($0.utf8) + [UInt8(ascii: "/")] } ?? []
        guard path.count > folder.count else { return false }
        return (0..<path.count - folder.count).contains { start in
            path[start...].starts(with: folder) && !directory.starts(with: path[..<(start + folder.count)])
        }
    }
}
