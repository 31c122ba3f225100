import Glibc
import LinuxSupport
import StallReports

/// The file in which Kubernetes looks for the reason why a container ended (terminationMessagePath).
enum TerminationLog {
    static let maximumBytes = 4_096
    /// The longest delay that the file may cause to an escalation, in nanoseconds.
    static let timeLimit: UInt64 = 1_000_000_000

    static func message(_ report: StallReport) -> [UInt8] {
        let text = "\(report.summary)\nreport: \(report.fileName)\n"
        return Array(text.prefix(bytes: maximumBytes).utf8)
    }

    /// Replaces the file's contents in place, because runtimes mount it: it cannot be renamed.
    private static func write(_ bytes: [UInt8], to file: FixedFile) -> SystemError? {
        let path = file.path
        // O_NONBLOCK: a FIFO without a reader is an error, not a wait.
        let descriptor = file.directory.open(file.name, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0o644)
        guard descriptor >= 0 else {
            return SystemError(
                "the termination log \(path) cannot be opened: name a file that may be written", errno: errno)
        }
        let failure = writeAll(bytes, to: descriptor)
        guard close(descriptor) != 0 || failure != nil else { return nil }
        return SystemError(
            "the termination log \(path) cannot be written: free some space or name another file",
            errno: failure ?? errno)
    }

    /// Does the same on a thread of its own, waits for ``timeLimit`` at most, and returns the error if there is one.
    static func writeInTime(_ bytes: [UInt8], to file: FixedFile) -> SystemError? {
        let write = { @Sendable in Self.write(bytes, to: file) }
        guard let call = try? LateCall(name: "stallwatch-end", { _ in write() }) else { return write() }
        return call.value(until: monotonicNow() &+ timeLimit)
            ?? SystemError("the termination log \(file.path) took too long: name a file on another disk")
    }
}
