package import StallReports

/// Which images are the app's own: the executable, and what lies outside the directories where systems and toolchains put
/// theirs.
///
/// A frame in such an image is still not the app's if it is code of a library that was linked into it; see
/// ``FunctionClassifier``.
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

/// The part of a path before its last slash.
private func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "" }
    return String(path[..<slash])
}
