import Foundation
import Glibc
import LinuxSupport

/// A JSON file with the results, for programs.
///
/// It appears as a whole or not at all.
struct SummaryFile {
    /// The file itself: a symbolic link stays, and its target is replaced.
    private let path: String

    /// Checks that the file can be made, and leaves an existing file unchanged.
    ///
    /// - Parameter path: Not empty.
    /// - Throws: `DemoFailure` if the file cannot be made.
    init(path: String) throws(DemoFailure) {
        self.path = Self.resolved(path)
        let type = try? FileManager.default.attributesOfItem(atPath: self.path)[.type] as? FileAttributeType
        guard type == nil || type == .typeRegular else {
            throw DemoFailure(.cannotCreate, "\(path) is not a regular file: name another one for the summary")
        }
        let probe = "\(self.path).\(getpid()).tmp"
        try Self.attempt { () throws(SystemError) in try AtomicFile.write([], to: probe) }
        unlink(probe)
    }

    /// Writes or replaces the file.
    func write(_ value: some Encodable) throws(DemoFailure) {
        let json = try Summary.json(value)
        try Self.attempt { () throws(SystemError) in try AtomicFile.replace(path, with: json) }
    }

    /// Writes or replaces the file.
    func write(_ outcomes: [Outcome]) throws(DemoFailure) { try write(outcomes.map(Summary.init)) }

    private static func attempt(_ body: () throws(SystemError) -> Void) throws(DemoFailure) {
        do throws(SystemError) {
            try body()
        } catch {
            throw DemoFailure("the summary \(error.message)", errno: error.errno ?? EIO)
        }
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
