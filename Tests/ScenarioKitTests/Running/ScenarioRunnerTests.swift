import Foundation
import StallReports
import StallWatch
import Testing
import TestSupport

@testable import stallwatch_scenarios

@Suite struct RetryPolicyTests {
    private let right = Outcome.stub(
        "spin", in: "spin()", cause: "io",
        [ReportedStall(file: "a.json", loop: "main", milliseconds: 500, function: "spin()", cause: "io")])

    /// Returns how often a scenario runs that always has the right outcome after `change`.
    private func runs(isDisturbed: Bool, _ change: (inout Outcome) -> Void) async throws -> Int {
        var outcome = right
        change(&outcome)
        var runs = 0
        let last = try await RetryPolicy(watchHost: { { isDisturbed } }).settle(
            { () async throws(ScenariosFailure) in
                runs += 1
                return outcome
            }, onRetry: { _ in })
        #expect(last.retries == runs - 1)
        return runs
    }

    @Test func onlyWhatTheClockDecidesRunsAgain() async throws {
        let most = RetryPolicy.maximumAttempts
        #expect(try await runs(isDisturbed: true) { $0.reports[0].milliseconds = 900 } == most)
        #expect(try await runs(isDisturbed: false) { $0.reports[0].milliseconds = 900 } == 1)
        #expect(try await runs(isDisturbed: true) { $0.reports = [] } == 1)
        #expect(try await runs(isDisturbed: true) { $0.reports[0].function = "other()" } == 1)
        // Inconclusive: nothing was judged.
        let unjudged = try await runs(isDisturbed: false) {
            ($0.reports[0].cause, $0.runnableMilliseconds) = ("cpuContention", 400)
        }
        #expect(unjudged == most)
    }
}

@Suite struct StressRoundsTests {
    private let directory = TemporaryDirectory.ofTest()

    /// Runs the scenario `idle` once, with a shell script as the program.
    private func row(_ script: String) async throws -> StressRounds.Row {
        let source = try directory.write("source", "#!/bin/sh\nmkdir -p \"$5\"\nsummary=$7\n\(script)\n")
        return try await StressRounds(
            scenarios: [], count: 1, output: directory.path("out"), options: [], timeout: .seconds(120),
            executable: directory.program("program", from: source)
        ).row(of: "idle", round: 2)
    }

    private func summary(_ result: String, retries: Int = 0) -> String {
        #"echo '[{"scenario": "idle", "result": "\#(result)", "retries": \#(retries)}]' > "$summary""#
    }

    private var folderExists: Bool { FileManager.default.fileExists(atPath: directory.path("out/idle-2")) }

    @Test func onlyAWrongResultKeepsItsFolder() async throws {
        let row = try await row(summary("ok", retries: 3))
        #expect(row == .init(scenario: "idle", result: .ok, retries: 3))
        #expect(!folderExists)
        #expect(try await self.row(summary("wrong-cause") + "\nexit 1") == .init(scenario: "idle", result: .wrongCause))
        #expect(folderExists)
    }

    @Test func `a process that dies after its summary has no result`() async throws {
        #expect(try await row(summary("ok") + "\nkill -SEGV $$").result == .noResult)
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
        let alone = Scenario.all.filter(ScenarioLanes.isAlone).map(\.name)
        #expect((computing + blocking + alone).sorted() == Scenario.all.map(\.name).sorted())
        #expect(ScenarioLanes.alone.isSubset(of: alone), "each name is a scenario's")
    }
}

@Suite struct ChildProcessTests {
    @Test func aChildThatDoesNotEndIsKilled() async throws {
        let child = try ChildProcess(["-c", "exec sleep 600"], executable: "/bin/sh")
        #expect(await child.finish(within: .milliseconds(50)).description == "was ended by signal 9 and wrote ''")
    }
}
