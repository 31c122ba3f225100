import Foundation

/// A directory of one test's own, which goes away with this object.
final class Scratch: Sendable {
    /// Its path, without a slash at the end.
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/stallwatch-cli-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file in it; returns its path.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }

    /// Writes a file in it; returns its path.
    @discardableResult
    func write(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = URL(fileURLWithPath: path + "/" + name)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        // As a monitor does: written beside and renamed.
        try Data(bytes).write(to: file, options: .atomic)
        return file.path
    }

    /// Writes reports' files.
    func write(_ reports: [ReportFixture], in folder: String = "") throws {
        for report in reports { try write(folder + report.fileName, report.bytes) }
    }

    /// The names of all files in it, hidden ones too, sorted.
    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }
}
