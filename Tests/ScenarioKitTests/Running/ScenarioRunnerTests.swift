import ArgumentParser
import Foundation
import StallReports
import StallWatch
import Testing
import TestSupport

@testable import ScenarioKit
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

    @Test func aResultOfTheClockIsRepeatedOnADisturbedHost() async throws {
        for (isDisturbed, wanted) in [(true, RetryPolicy.maximumAttempts), (false, 1)] {
            #expect(try await runs(isDisturbed: isDisturbed) { $0.reports[0].milliseconds = 900 } == wanted)
            #expect(try await runs(isDisturbed: isDisturbed) { $0.reports.append($0.reports[0]) } == wanted)
        }
    }

    @Test func otherResultsStand() async throws {
        #expect(try await runs(isDisturbed: true) { _ in } == 1)
        #expect(try await runs(isDisturbed: true) { $0.reports = [] } == 1)
        #expect(try await runs(isDisturbed: true) { $0.reports[0].function = "other()" } == 1)
        #expect(try await runs(isDisturbed: true) { $0.reports[0].cause = "cpu" } == 1)
    }

    @Test func anInconclusiveRunIsRepeated() async throws {
        let runs = try await runs(isDisturbed: false) {
            ($0.reports[0].cause, $0.runnableMilliseconds) = ("cpuContention", 400)
        }
        #expect(runs == RetryPolicy.maximumAttempts)
    }
}

@Suite struct GivenDurationTests {
    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("0.5s", .milliseconds(500)), ("75000us", .microseconds(75_000)),
    ])
    func aNumberAndAUnitAreRead(text: String, duration: Duration) throws {
        let threshold = try GivenDuration.threshold(text)
        #expect(threshold.duration == duration)
        #expect(threshold.description == text)
        #expect(try GivenDuration.length("8h").duration == .seconds(28_800))
    }

    @Test(arguments: ["", "250", "ms", "abc", "1 s", "1.2.3s", "0x10ms", "1e3ms", "infs", "1,5s", "٣s", "--1s", "-5ms"])
    func otherTextIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try GivenDuration.threshold(text) }
        #expect(error?.message.contains("not a duration") == true)
    }

    @Test(arguments: ["0ms", "19.999ms", "60.001s", "8h"])
    func aThresholdOutOfRangeIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try GivenDuration.threshold(text) }
        #expect(error?.message.contains("20ms to 60s") == true)
    }
}

@Suite struct StressRoundsTests {
    private let directory = TemporaryDirectory.ofTest()

    /// Runs the scenario `idle` once, with a shell script as the program.
    private func row(_ script: String) async throws -> StressRounds.Row {
        let path = try directory.write("program", "#!/bin/sh\nmkdir -p \"$5\"\nsummary=$7\n\(script)\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        let rounds = StressRounds(
            scenarios: [], count: 1, output: directory.path("out"), options: [], timeout: .seconds(120),
            executable: path)
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
        let all = Set(computing + blocking).union(ScenarioLanes.alone)
        #expect(all == Set(Scenario.all.map(\.name)))
        #expect(computing.count + blocking.count + ScenarioLanes.alone.count == Scenario.all.count)
    }
}

@Suite struct ChildProcessTests {
    @Test func aChildThatDoesNotEndIsKilled() async throws {
        let child = try ChildProcess(["-c", "exec sleep 60"], executable: "/bin/sh")
        #expect(await child.finish(within: .milliseconds(50)).description == "was ended by signal 9 and wrote ''")
    }
}
