import Foundation

/// A directory for one test, removed together with this object.
package final class TemporaryDirectory: Sendable {
    /// The directory's path, without a slash at the end.
    package let path: String

    /// Creates an empty directory.
    package init() throws {
        path = FileManager.default.temporaryDirectory.path + "/stallwatch-tests-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        // If this fails, the files stay in the system's directory for temporary files.
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Returns the path of the file `name` in the directory.
    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// The sorted names of the directory's entries, with hidden files; empty if the directory is gone.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// Writes a file in the directory, and returns the file's path.
    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }

    /// Writes a file in the directory, and returns the file's path.
    ///
    /// Creates missing directories in `name`.
    @discardableResult
    package func write(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let file = URL(fileURLWithPath: path(name))
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        // As a monitor does: writes a temporary file and renames it.
        try Data(bytes).write(to: file, options: .atomic)
        return file.path
    }
}
