import Foundation
import TestSupport
import Testing

@testable import stallwatch_demo

@Suite struct StressRoundsTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Runs the scenario `idle` once, with a shell script as the demo.
    private func row(_ script: String) async throws -> StressRounds.Row {
        let path = try directory.write("demo", "#!/bin/sh\nmkdir -p \"$5\"\nsummary=$7\n\(script)\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        let rounds = StressRounds(
            scenarios: [], count: 1, output: directory.path("out"), options: [], executable: path)
        for _ in 0..<Self.maximumAttempts {
            if let row = try await Self.attempt(rounds) { return row }
            await Task.yield()
        }
        return try await rounds.row(of: "idle", round: 2)
    }

    /// Returns `nil` while the script cannot be started (ETXTBSY of execve(2)).
    ///
    /// A process that another test starts has the script open for writing until its own exec.
    private static func attempt(_ rounds: StressRounds) async throws -> StressRounds.Row? {
        do {
            return try await rounds.row(of: "idle", round: 2)
        } catch {
            guard "\(error)".contains("Text file busy") else { throw error }
            return nil
        }
    }

    private static let maximumAttempts = 1_000

    private func summary(_ result: String, retries: Int = 0) -> String {
        #"echo '[{"scenario": "idle", "result": "\#(result)", "retries": \#(retries)}]' > "$summary""#
    }

    private var folderExists: Bool { FileManager.default.fileExists(atPath: directory.path("out/idle-2")) }

    @Test func aRightResultIsCountedAndItsFolderRemoved() async throws {
        let row = try await row(summary("ok", retries: 3))
        #expect(row == .init(scenario: "idle", result: .ok, retries: 3))
        #expect(!folderExists)
    }

    @Test func aWrongResultKeepsItsFolder() async throws {
        let row = try await row(summary("wrong-cause") + "\nexit 1")
        #expect(row == .init(scenario: "idle", result: .wrongCause))
        #expect(folderExists)
    }

    @Test(arguments: ["exit 74", "kill -SEGV $$", "echo '[' > \"$summary\""])
    func aProcessWithoutASummaryHasNoResult(script: String) async throws {
        #expect(try await row(script).result == .noResult)
    }

    @Test func aProcessThatDiesAfterItsSummaryHasNoResult() async throws {
        #expect(try await row(summary("ok") + "\nkill -SEGV $$").result == .noResult)
    }

    @Test func anOldSummaryDoesNotCount() async throws {
        _ = try await row(summary("wrong-cause"))
        #expect(try await row("exit 0").result == .noResult)
    }

    @Test func theLanesHaveEveryScenarioOnce() {
        let lanes = ScenarioLanes(Scenario.all)
        var (computing, blocking): ([String], [String]) = ([], [])
        // The computing lane helps once it has nothing to compute.
        while let scenario = lanes.next(.computing) {
            computing.append(scenario.name)
            if let other = lanes.next(.blocking) {
                blocking.append(other.name)
                #expect(!other.computes)
            }
        }
        let all = Set(computing + blocking).union(ScenarioLanes.alone)
        #expect(all == Set(Scenario.all.map(\.name)))
        #expect(computing.count + blocking.count + ScenarioLanes.alone.count == Scenario.all.count)
    }
}
