import Foundation

/// A directory of one test's own, which goes away with this object.
package final class TemporaryDirectory: Sendable {
    /// Its path, without a slash at the end.
    package let path: String

    /// Makes an empty one.
    package init() throws {
        path = FileManager.default.temporaryDirectory.path + "/stallwatch-tests-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        // What is left behind when this fails lies in the system's directory for such things.
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The path of a file in it.
    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// The names of what is in it, hidden files too, sorted; none when it is gone.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// Writes a file in it, and returns the file's path.
    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }

    /// Writes a file in it, and returns the file's path.
    ///
    /// The directories that it is in are made.
    @discardableResult
    package func write(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let file = URL(fileURLWithPath: path(name))
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        // As a monitor does: written beside and renamed.
        try Data(bytes).write(to: file, options: .atomic)
        return file.path
    }
}
