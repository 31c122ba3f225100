import Foundation
import Glibc
import LinuxSupport
import StallReports
import TestSupport

/// A service of the test host, with its health file and the messages that it sends to its service manager.
///
/// It ends with this object at the latest.
final class HealthHostProcess {
    /// What the manager expects: a `WATCHDOG=1` every 400 ms at most, so one is sent every 200 ms.
    static let limitMicroseconds = 400_000

    let directory: TemporaryDirectory
    let manager: DatagramReceiver
    private let process: Process
    private let commands = Pipe()
    private let output = Pipe()

    /// Starts the service.
    ///
    /// - Parameters:
    ///   - words: How it hangs, and how it escalates.
    ///   - isAbstract: Whether the manager's socket is in the abstract namespace.
    /// - Throws: An error if the service cannot be started.
    init(_ words: String..., isAbstract: Bool = false) throws {
        directory = try TemporaryDirectory()
        manager = try DatagramReceiver(isAbstract: isAbstract)
        process = Command(
            program: try Command.product("stallwatch-test-host"), arguments: ["health", directory.path] + words,
            environment: [
                "NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "\(Self.limitMicroseconds)", "WATCHDOG_PID": nil,
                "SWIFT_BACKTRACE": "enable=no",
            ]
        ).process()
        process.standardInput = commands
        process.standardOutput = output
        try process.run(atMost: Process.timeout)
    }

    deinit { process.kill() }

    var pid: Int32 { process.processIdentifier }

    /// Gives the service a command.
    func command(_ line: String) { commands.fileHandleForWriting.write(Data((line + "\n").utf8)) }

    /// Waits for the end of the service, and returns its output's lines and how it ended.
    func finish() -> (lines: [String], status: Int32, reason: Process.TerminationReason) {
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let lines = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
        return (lines, process.terminationStatus, process.terminationReason)
    }

    /// Waits until the service is ready, and returns its first message; `nil` if it is not ready within 20 s.
    func ready() -> String? {
        let deadline = monotonicNow() + 20_000_000_000
        while let message = manager.next(until: deadline) {
            if message.contains("READY=1") { return message }
        }
        return nil
    }

    /// The messages that come in the next milliseconds.
    func messages(milliseconds: UInt64) -> [String] { manager.all(until: monotonicNow() + milliseconds * 1_000_000) }

    /// Waits until the loop is reported as stalled, and returns the status.
    func stalledStatus() -> String? {
        let deadline = monotonicNow() + 20_000_000_000
        while let message = manager.next(until: deadline) {
            if let status = status(message), status.contains("has not come back") { return status }
        }
        return nil
    }

    /// The status in a message; `nil` if it has none.
    func status(_ message: String) -> String? {
        message.split(separator: "\n").first { $0.hasPrefix("STATUS=") }.map { String($0.dropFirst(7)) }
    }

    var healthPath: String { directory.path("health") }

    /// The record in the health file.
    var record: HealthRecord? {
        AtomicFile.read(healthPath, limit: HealthRecord.maximumBytes).flatMap { HealthRecord(jsonData: $0) }
    }

    /// The modification time of the health file, in nanoseconds since 1970.
    var changedAt: Int? { FileStatus(path: healthPath)?.changedAt }

    /// The exit status and the output of the tool.
    struct Answer: Equatable {
        var status: Int32
        var text: String

        init(_ status: Int32, _ text: String) {
            self.status = status
            self.text = text
        }
    }

    /// The result of `stallwatch health`, with the process id or with the file.
    func health(byFile: Bool = false) throws -> Answer {
        let target = byFile ? healthPath : "\(pid)"
        let result = try Command(program: Command.product("stallwatch"), arguments: ["health", target]).run()
        return Answer(result.status, result.text)
    }

    /// The number of feeds in messages.
    static func feeds(_ messages: [String]) -> Int {
        messages.count { $0.split(separator: "\n").contains("WATCHDOG=1") }
    }
}
