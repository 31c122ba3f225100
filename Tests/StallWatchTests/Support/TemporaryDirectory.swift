import Foundation

/// A directory of one test's own, which goes away with this object.
final class TemporaryDirectory: Sendable {
    /// Its path, without a slash at the end.
    let path: String

    init() throws {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-tests-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
        path = url.path
    }

    deinit {
        // What is left behind when this fails lies in the system's directory for such things.
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The names of what is in it, hidden files too, sorted; none when it is gone.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// Puts a file into it, and returns the file's path.
    func file(_ name: String, _ bytes: some Sequence<UInt8> = []) throws -> String {
        let file = path + "/" + name
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        return file
    }
}
