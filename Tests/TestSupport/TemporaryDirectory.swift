import Foundation
package import StallReports
import Testing

/// A directory for one test, removed together with this object.
package final class TemporaryDirectory: Sendable {
    /// The directory's path, without a slash at the end.
    package let path: String

    /// Creates an empty directory; if `isInMemory`, in memory where possible, for tests that must not wait for a disk.
    package convenience init(isInMemory: Bool = false) throws {
        self.init(inMemory: isInMemory)
        try create()
    }

    private init(inMemory: Bool) {
        let memory = "/dev/shm"
        let inMemory = inMemory && FileManager.default.isWritableFile(atPath: memory)
        let parent = inMemory ? memory : FileManager.default.temporaryDirectory.path
        path = parent + "/stallwatch-tests-\(UUID().uuidString)"
    }

    private func create() throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    /// Returns an empty directory for a suite's property, so that each test has its own; if it cannot be created, that
    /// is an issue of the test.
    package static func ofTest(isInMemory: Bool = false) -> TemporaryDirectory {
        let directory = TemporaryDirectory(inMemory: isInMemory)
        do { try directory.create() } catch { Issue.record(error) }
        return directory
    }

    deinit {
        // If this fails, the files stay in the system's directory for temporary files.
        try? FileManager.default.removeItem(atPath: path)
    }

    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// The sorted names of the directory's entries, with hidden files; empty if the directory is gone.
    package var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted() }

    /// The names of the entries that are not hidden.
    package var shownNames: [String] { names.filter { !$0.hasPrefix(".") } }

    /// The path of the control socket of a process.
    package func controlSocket(of pid: Int32) -> String {
        path(names.first { $0.hasPrefix("stallwatch-\(pid)-") && ControlRequest.isSocketName($0) } ?? "no-socket")
    }

    /// Writes a file in the directory, and returns the file's path.
    @discardableResult
    package func write(_ name: String, _ text: String) throws -> String { try write(name, Array(text.utf8)) }

    /// Writes a file in the directory, and returns the file's path; creates missing directories in `name`.
    @discardableResult
    package func write(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let file = URL(fileURLWithPath: path(name))
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        // As a monitor does: writes a temporary file and renames it.
        try Data(bytes).write(to: file, options: .atomic)
        return file.path
    }

    /// Copies a program or a script, for every user, and returns its path.
    ///
    /// In another process: a test's child has open what this one writes, until its execve(2), which makes it busy (ETXTBSY).
    package func program(_ name: String, from source: String) throws -> String {
        try Command(program: "/usr/bin/install", arguments: ["-m", "755", source, path(name)]).succeed()
        return path(name)
    }
}

extension TemporaryDirectory {
    package var reportNames: [String] { names.filter { $0.hasPrefix("stall-") && $0.hasSuffix(".json") } }

    package func report(_ name: String) throws -> StallReport {
        let data = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
        return try StallReport(jsonData: Array(data))
    }

    package func reports() throws -> [StallReport] { try reportNames.map(report) }
}
