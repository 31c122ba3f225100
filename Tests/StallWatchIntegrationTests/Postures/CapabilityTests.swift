import Foundation
import Glibc
import TestSupport
import Testing

@testable import StallReports

/// The capabilities of a monitor in a process of its own.
///
/// ``PostureMatrixTests`` compares them with its reports.
@Suite(.serialized) struct CapabilityTests {
    /// Starts the host where ptrace is refused.
    private func start(
        _ arguments: [String], _ directory: TemporaryDirectory, environment: [String] = []
    ) throws -> TestHost {
        let library = try Preload.forbid.make(in: directory)
        return try TestHost(arguments, wrapper: ["FORBID_CALLS=ptrace:1"] + environment + ["LD_PRELOAD=\(library)"])
    }

    /// The kernel ends a process that sends a signal, and ptrace is refused: the monitor does not try signals.
    @Test func `a filter that kills does not end a program at its start`() throws {
        let directory = try TemporaryDirectory()
        let arguments = ["stalls", directory.path("reports"), "20000", "1", "500", "500"]
        #expect(try start(arguments, directory, environment: ["FORBID_SIGNALS=1"]).finish().last == "S 0")
    }

    @Test func `the tool reads what the monitor has found`() throws {
        let directory = try TemporaryDirectory()
        // Sleeps for longer than the test takes, and for less than its threshold.
        let arguments = ["stalls", directory.path("reports"), "90000", "1", "60000", "60000"]
        let host = try start(arguments, directory)
        // The file is there as soon as the monitor has tried everything.
        var answer: Tool.Diagnosis?
        let isThere = eventually {
            let text = try? Tool.run(["doctor", "--json", "\(host.pid)"])
            answer = text.flatMap { try? Tool.decode(Tool.Diagnosis.self, $0) }
            return answer?.source == "monitor"
        }
        #expect(isThere)
        let found = try #require(answer)
        #expect(found.capabilities[.ptrace]?.state == .missing)
        #expect(found.capabilities.environment.pid == host.pid)
        #expect(found.capabilities.environment.seccompMode == 2)
        #expect(found.process?.isMonitored == true)
        #expect(found.process?.reportDirectory == directory.path("reports"))
        // The file has no name in the directory.
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("reports"))
        #expect(names == [])
        let text = try Tool.run(["doctor", "\(host.pid)"])
        #expect(text.contains("Missing: capture by ptrace (Operation not permitted)\n"))
        #expect(text.contains("\n    set:  systemd: SystemCallFilter=ptrace on a line of its own\n"))
    }
}
