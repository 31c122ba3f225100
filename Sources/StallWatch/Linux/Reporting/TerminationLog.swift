import Glibc
import LinuxSupport
import StallReports
import Synchronization

/// The file in which Kubernetes looks for the reason why a container ended (terminationMessagePath).
///
/// It is written on a thread of its own, because its file system may hang. While that is late, there is no further one.
final class TerminationLog: Sendable {
    static let maximumBytes = 4_096
    /// The longest delay that the file may cause to an escalation, in nanoseconds.
    static let timeLimit: UInt64 = 1_000_000_000

    private let path: String
    private let timeLimit: UInt64
    private let body: @Sendable ([UInt8]) -> SystemError?
    private let last = Mutex<LateCall<SystemError?>?>(nil)

    convenience init(_ file: FixedFile) { self.init(file.path) { TerminationLog.write($0, to: file) } }

    init(
        _ path: String, within timeLimit: UInt64 = TerminationLog.timeLimit,
        body: @escaping @Sendable ([UInt8]) -> SystemError?
    ) {
        (self.path, self.timeLimit, self.body) = (path, timeLimit, body)
    }

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
        let opened = KeptDescriptor(descriptor)
        let failure = writeAll(bytes, to: opened.usable)
        let closing = opened.close()
        guard closing != 0 || failure != nil else { return nil }
        return SystemError(
            "the termination log \(path) cannot be written: free some space or name another file",
            errno: failure ?? closing)
    }

    /// Replaces the file's contents, for which it waits as long as its limit; returns the error if there is one.
    func write(_ bytes: [UInt8]) -> SystemError? {
        let late = SystemError("the termination log \(path) took too long: name a file on another disk")
        return last.withLock { [body, timeLimit] last -> SystemError? in
            if let call = last, call.result == nil { return late }
            guard let call = try? LateCall(name: "stallwatch-end", { _ in body(bytes) }) else { return body(bytes) }
            last = call
            return call.value(until: monotonicNow() &+ timeLimit) ?? late
        }
    }
}
