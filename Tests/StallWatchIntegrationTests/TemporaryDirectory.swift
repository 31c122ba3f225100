import Foundation

/// A directory of one test's own, which goes away with this object.
final class TemporaryDirectory: Sendable {
    /// Its path, without a slash at the end.
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/stallwatch-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        // What is left behind when this fails lies in the system's directory for such things.
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The path of a file in it.
    func path(_ name: String) -> String { "\(path)/\(name)" }

    /// The names of what is in it, hidden files too, sorted.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}
