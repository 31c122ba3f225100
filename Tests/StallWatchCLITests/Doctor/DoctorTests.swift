import Foundation
import Glibc
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatchCLI

/// `stallwatch doctor` in a process of its own.
@Suite struct DoctorTests {
    /// The fields of the JSON that the tests read.
    private struct Answer: Decodable {
        struct Process: Decodable {
            let pid: Int32
            let isMonitored: Bool
            let reportDirectory: String?
        }
        let source: String
        let capabilities: Capabilities
        let process: Process?
    }

    private func answer(_ text: String) throws -> Answer {
        try JSONDecoder().decode(Answer.self, from: Data(text.utf8))
    }

    @Test func `the tool tries what a program like it could do`() throws {
        let result = try Tool.run(["doctor", "--json"])
        #expect(result.status == 0)
        #expect(result.errors == "")
        let answer = try answer(result.output)
        #expect(answer.source == "tool")
        #expect(answer.process == nil)
        #expect(answer.capabilities.features.map(\.name) == Capabilities.FeatureName.known)
        #expect(answer.capabilities[.processVMReadv]?.state == .works)
        let text = try Tool.run(["doctor"])
        #expect(text.output.hasPrefix("StallWatch 0.1.0, in a program that is started like this tool\n"))
        #expect(text.status == 0)
    }

    @Test func `a process that has ended is named`() throws {
        let process = Command(program: "/bin/true").process()
        try process.run()
        process.waitUntilExit()
        let result = try Tool.run(["doctor", "\(process.processIdentifier)"])
        #expect(result.errors == "Error: There is no process \(process.processIdentifier).\n")
        #expect(result.output == "")
        #expect(result.status == 66)
    }

    @Test func `a process without a monitor is named`() throws {
        let process = Command(program: "/bin/sleep", arguments: ["60"]).process()
        try process.run()
        defer { kill(process.processIdentifier, SIGKILL) }
        let result = try Tool.run(["doctor", "\(process.processIdentifier)"])
        #expect(result.errors.hasPrefix("Error: Process \(process.processIdentifier) is not monitored: "))
        #expect(result.errors.split(separator: "\n").count == 1)
        #expect(result.output.hasPrefix("Process \(process.processIdentifier), seen from outside\n"))
        #expect(result.status == 66)
        let json = try Tool.run(["doctor", "--json", "\(process.processIdentifier)"])
        #expect(try answer(json.output).source == "outside")
        #expect(try answer(json.output).process?.isMonitored == false)
        #expect(json.status == 66)
    }

    @Test func `a thread id is not taken for a process id`() throws {
        let thread = try #require(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").compactMap(Int32.init).first {
                $0 != getpid()
            })
        let result = try Tool.run(["doctor", "\(thread)"])
        #expect(
            result.errors == "Error: \(thread) is a thread of process \(getpid()): give the id of the process.\n"
                || result.errors == "Error: There is no process \(thread).\n", "the thread may have ended")
        #expect(result.status == 66)
    }

    @Test(.enabled(if: geteuid() == 0 && Command.find("setpriv") != nil, "needs root and setpriv(1)"))
    func `another user's process is named`() throws {
        let tool = try Command.product("stallwatch")
        // A copy, because the build's directory may be closed to other users.
        let scratch = try TemporaryDirectory()
        let copy = scratch.path("stallwatch")
        try FileManager.default.copyItem(atPath: tool, toPath: copy)
        chmod(scratch.path, 0o755)
        let result = try Command(
            program: try #require(Command.find("setpriv")),
            arguments: ["--reuid=65534", "--clear-groups", copy, "doctor", "\(getpid())"]
        ).run()
        #expect(
            result.errors == "Error: Process \(getpid()) belongs to user 0: run the tool as that user or as root.\n")
        #expect(result.output == "")
        #expect(result.status == 77)
    }

    @Test(arguments: [("0", "0 is not the id of a process: give a number from 1 on."), ("-1", ""), ("x", "")])
    func `a wrong process id is a wrong command line`(pid: String, message: String) throws {
        let result = try Tool.run(["doctor", pid])
        #expect(result.errors.hasPrefix("Error: " + message))
        #expect(result.status == 64)
    }
}
