import Foundation
import Glibc
import TestSupport
import Testing

@testable import StallReports

/// What a monitor claims to be able to do agrees with its reports, and `stallwatch doctor` tells the same.
@Suite(.serialized) struct CapabilityTests {
    /// A restriction of the process, simulated.
    struct Posture: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var environment: [String: String] = [:]
        /// The features that the restriction takes away.
        var missing: Set<Capabilities.FeatureName>

        static let all = [
            Posture(testDescription: "none", missing: []),
            Posture(
                testDescription: "no ptrace", environment: ["FORBID_PTRACE": "1"], missing: [.ptrace, .pageFaults]),
            Posture(
                testDescription: "no fsync", environment: ["FORBID_FLUSHING": "\(EPERM)"],
                missing: [.flush, .pageFaults]),
        ]
    }

    /// Starts the host under a posture.
    private func start(
        _ arguments: [String], _ posture: Posture, _ directory: TemporaryDirectory
    ) throws -> TestHost {
        let environment = posture.environment.map { "\($0.key)=\($0.value)" }
        return try TestHost(
            arguments, wrapper: environment + ["LD_PRELOAD=\(try Preload.forbid.make(in: directory))"])
    }

    /// Runs the host under a posture, and returns the capabilities that it prints.
    private func run(_ posture: Posture, _ directory: TemporaryDirectory) throws -> Capabilities {
        let lines = try start(["capabilities", directory.path("reports")], posture, directory).finish()
        let text = try #require(lines.first)
        return try #require(Capabilities(jsonData: Array(text.utf8)), "\(text)")
    }

    private func reports(in directory: TemporaryDirectory) throws -> [StallReport] {
        try FileManager.default.contentsOfDirectory(atPath: directory.path("reports")).filter(StallReport.isFileName)
            .map { try directory.report("reports/\($0)") }
    }

    @Test(arguments: Posture.all) func `claims agree with reports`(posture: Posture) throws {
        let directory = try TemporaryDirectory()
        let capabilities = try run(posture, directory)
        let reports = try reports(in: directory)
        #expect(reports.count == 2)
        #expect(CapabilityClaims(capabilities: capabilities, reports: reports).contradictions == [])
        let missing = Set(capabilities.missing.map(\.name))
        #expect(missing.isSuperset(of: posture.missing))
        for feature in capabilities.missing { #expect(feature.loss != nil) }
        let isEssential = posture.missing.contains { !$0.isOptional }
        #expect(capabilities.summary != nil || !isEssential)
    }

    /// The kernel ends a process that sends a signal, and ptrace is refused: the monitor does not try signals.
    @Test func `a filter that kills does not end a program at its start`() throws {
        let directory = try TemporaryDirectory()
        let posture = Posture(
            testDescription: "no ptrace, deadly signals", environment: ["FORBID_PTRACE": "1", "FORBID_SIGNALS": "1"],
            missing: [.ptrace, .signal])
        let arguments = ["stalls", directory.path("reports"), "20000", "1", "500", "500"]
        #expect(try start(arguments, posture, directory).finish().last == "S 0")
    }

    /// The reference: the comparison finds a wrong claim.
    @Test func `a wrong claim is contradicted`() throws {
        let directory = try TemporaryDirectory()
        let capabilities = try run(Posture.all[0], directory)
        let reports = try reports(in: directory)
        for name in [Capabilities.FeatureName.read, .waitChannel, .status, .bootID, .symbols] {
            var wrong = capabilities
            let index = try #require(wrong.features.firstIndex { $0.name == name })
            wrong.features[index].state = wrong.features[index].state == .works ? .missing : .works
            #expect(CapabilityClaims(capabilities: wrong, reports: reports).contradictions.count == 1)
        }
    }

    @Test func `the tool reads what the monitor has found`() throws {
        let directory = try TemporaryDirectory()
        // Sleeps for longer than the test takes, and for less than its threshold.
        let arguments = ["stalls", directory.path("reports"), "90000", "1", "60000", "60000"]
        let host = try start(arguments, Posture.all[1], directory)
        struct Answer: Decodable {
            struct Process: Decodable {
                let isMonitored: Bool
                let reportDirectory: String?
            }
            let source: String
            let capabilities: Capabilities
            let process: Process
        }
        // The file is there as soon as the monitor has tried everything.
        var answer: Answer?
        let isThere = eventually {
            let text = try? Tool.run(["doctor", "--json", "\(host.pid)"])
            answer = text.flatMap { try? Tool.decode(Answer.self, $0) }
            return answer?.source == "monitor"
        }
        #expect(isThere)
        let found = try #require(answer)
        #expect(found.capabilities[.ptrace]?.state == .missing)
        #expect(found.capabilities.environment.pid == host.pid)
        #expect(found.capabilities.environment.seccompMode == 2)
        #expect(found.process.isMonitored)
        #expect(found.process.reportDirectory == directory.path("reports"))
        // The file has no name in the directory.
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path("reports"))
        #expect(names == [])
        let text = try Tool.run(["doctor", "\(host.pid)"])
        #expect(text.contains("Missing: capture by ptrace (Operation not permitted)\n"))
        #expect(text.contains("\n    set:  systemd: SystemCallFilter=ptrace on a line of its own\n"))
    }
}
