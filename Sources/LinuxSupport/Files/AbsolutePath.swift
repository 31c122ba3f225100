import Glibc

/// Returns the absolute form of a path, without following links.
///
/// A program may change its directory later, and another process has its own.
///
/// - Parameter path: The path; a relative one is one of the current directory.
/// - Returns: The absolute path; `nil` if the path is relative and the current directory is unknown, with the reason in errno.
package func absolutePath(_ path: String) -> String? {
    if path.hasPrefix("/") { return path }
    guard let directory = getcwd(nil, 0) else { return nil }
    defer { free(directory) }
    return "\(String(cString: directory))/\(path)"
}
