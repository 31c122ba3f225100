/// Tells sources that the package manager has fetched from sources of the app.
enum PackageCheckout {
    /// The folders in the package manager's scratch directory (`.build`, `SourcePackages`) with the dependencies' sources.
    ///
    /// The first has Git checkouts, the second has archives from a package registry (Workspace+Configuration.swift of the
    /// package manager).
    private static let folders = ["/checkouts/", "/registry/downloads/"].map { Array($0.utf8) }

    /// Returns whether the source file at `path` belongs to a dependency.
    ///
    /// The compiler runs in the root package's directory. If that itself lies in a folder with such a name, the folder is
    /// not the package manager's.
    static func contains(_ path: String, compiledIn directory: String?) -> Bool {
        let path = Array(path.utf8)
        let directory = directory.map { Array($0.utf8) + [UInt8(ascii: "/")] } ?? []
        return folders.contains { folder in
            path.indices.contains { start in
                path[start...].starts(with: folder) && !directory.starts(with: path[..<(start + folder.count)])
            }
        }
    }
}
