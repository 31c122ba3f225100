import Foundation
import Glibc
import LinuxSupport
import StallWatch

/// The verdicts as a JSON file for programs.
///
/// It appears as a whole or not at all.
struct SummaryFile {
    /// The file itself: what symbolic links lead to, not they, is replaced.
    private let path: String
    /// Written first, in the same directory, then renamed.
    private let temporaryPath: String

    /// Checks that the file can be made, and leaves what is there.
    ///
    /// - Parameter path: Not empty.
    /// - Throws: When it cannot be made.
    init(path: String) throws(DemoFailure) {
        self.path = Self.resolved(path)
        let type = try? FileManager.default.attributesOfItem(atPath: self.path)[.type] as? FileAttributeType
        guard type == nil || type == .typeRegular else {
            throw DemoFailure(.cannotCreate, "\(path) is not a regular file: name another one for the summary")
        }
        let name = self.path.lastIndex(of: "/").map(self.path.index(after:)) ?? self.path.startIndex
        temporaryPath = "\(self.path[..<name]).\(self.path[name...]).\(getpid()).tmp"
        try writeTemporary([])
        unlink(temporaryPath)
    }

    /// Writes the file, or replaces it.
    func write(_ outcomes: [Outcome]) throws(DemoFailure) {
        try replace(with: Summary.json(outcomes))
    }

    /// Writes the file, or replaces it.
    func write(_ totals: SoakTotals) throws(DemoFailure) {
        try replace(with: Summary.json(totals))
    }

    private func replace(with bytes: [UInt8]) throws(DemoFailure) {
        try writeTemporary(bytes)
        guard rename(temporaryPath, path) == 0 else {
            let reason = errno
            unlink(temporaryPath)
            throw DemoFailure("the summary \(path) cannot be replaced: name another file", errno: reason)
        }
    }

    /// Writes the whole temporary file, or leaves none.
    private func writeTemporary(_ bytes: [UInt8]) throws(DemoFailure) {
        let descriptor = open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            throw DemoFailure(
                "the summary \(path) cannot be made: name a file in a directory that is there and writable",
                errno: errno
            )
        }
        var failure = writeAll(bytes, to: descriptor)
        if failure == nil, fsync(descriptor) != 0 { failure = errno }
        // Errors of a delayed write may only show here (close(2)).
        if close(descriptor) != 0, failure == nil { failure = errno }
        guard let failure else { return }
        unlink(temporaryPath)
        let reason = String(cString: strerror(failure))
        throw DemoFailure(
            .inputOutput, "the summary \(path) cannot be written: free some space or name another file: \(reason)"
        )
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}
