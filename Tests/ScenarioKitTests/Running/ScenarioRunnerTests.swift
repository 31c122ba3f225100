import ArgumentParser
import Foundation
import StallReports
import StallWatch
import Testing
import TestSupport

@testable import ScenarioKit
@testable import stallwatch_scenarios

@Suite struct RetryPolicyTests {
    /// An outcome of a stall of 500 ms with this result.
    private func outcome(_ result: ScenarioResult) throws -> Outcome {
        var outcome = Outcome.stub(
            "spin", in: "spin()", cause: "io",
            [ReportedStall(file: "a.json", loop: "main", milliseconds: 500, function: "spin()", cause: "io")])
        switch result {
        case .ok: break
        case .missed: outcome.reports = []
        case .suppressed: (outcome.reports, outcome.suppressedStalls) = ([], 1)
        case .wrongFunction: outcome.reports[0].function = "other()"
        case .wrongCause: outcome.reports[0].cause = "cpu"
        case .wrongOwner: outcome.reports[0].owner = "other"
        case .wrongDuration: outcome.reports[0].milliseconds = 900
        case .wrongSplit: outcome.reports[0].split = .init(onCPU: 0, runQueue: 0, blocked: 0, uncertainty: 0)
        case .incompleteStack: outcome.reports[0].incompleteSamples = 1
        case .falseAlarm: outcome.reports.append(outcome.reports[0])
        case .inconclusive: (outcome.reports[0].cause, outcome.runnableMilliseconds) = ("cpuContention", 400)
        case .notAvailable: outcome.unavailable = "missing"
        default: Issue.record("no outcome for \(result)")
        }
        try #require(outcome.result == result)
        return outcome
    }

    /// The number of runs of a scenario, of calls of `onRetry`, and of retries in the outcome.
    private struct Counts: Equatable {
        var runs, calls, retries: Int

        static let one = Counts(runs: 1, calls: 0, retries: 0)
        static let all = Counts(
            runs: RetryPolicy.maximumAttempts, calls: RetryPolicy.maximumAttempts - 1,
            retries: RetryPolicy.maximumAttempts - 1
        )
    }

    /// Settles a scenario that always has this result.
    private func counts(_ result: ScenarioResult, isDisturbed: Bool) async throws -> Counts {
        let outcome = try outcome(result)
        var (runs, calls) = (0, 0)
        let last = try await RetryPolicy(watchHost: { { isDisturbed } }).settle(
            { () async throws(ScenariosFailure) in
                runs += 1
                return outcome
            }, onRetry: { _ in calls += 1 })
        return Counts(runs: runs, calls: calls, retries: last.retries)
    }

    @Test(arguments: [ScenarioResult.wrongDuration, .wrongSplit, .falseAlarm, .suppressed])
    func `a result of the clock is repeated on a disturbed host`(result: ScenarioResult) async throws {
        #expect(try await counts(result, isDisturbed: true) == .all)
        #expect(try await counts(result, isDisturbed: false) == .one)
    }

    @Test(arguments: [
        ScenarioResult.ok, .missed, .wrongFunction, .wrongCause, .wrongOwner, .incompleteStack, .notAvailable,
    ])
    func `other results are not repeated on a disturbed host`(result: ScenarioResult) async throws {
        #expect(try await counts(result, isDisturbed: true) == .one)
    }

    @Test func anInconclusiveRunIsRepeated() async throws {
        #expect(try await counts(.inconclusive, isDisturbed: false) == .all)
    }

    @Test func theFirstRightOutcomeEndsTheRepetition() async throws {
        let outcomes = try [outcome(.wrongDuration), outcome(.wrongSplit), outcome(.ok), outcome(.missed)]
        var next = outcomes[...]
        let settled = try await RetryPolicy(watchHost: { { true } }).settle(
            { () async throws(ScenariosFailure) in next.removeFirst() }, onRetry: { _ in })
        #expect(settled.result == .ok)
        #expect(settled.retries == 2)
    }

    @Test func whatCanRunOnlyOnceKeepsItsResult() async throws {
        let outcomes = try [outcome(.wrongDuration), outcome(.notAvailable)]
        var next = outcomes[...]
        let settled = try await RetryPolicy(watchHost: { { true } }).settle(
            { () async throws(ScenariosFailure) in next.removeFirst() }, onRetry: { _ in })
        #expect(settled.result == .wrongDuration)
    }

    @Test func aFailureIsNeverRepeated() async {
        let failure = ScenariosFailure(.systemError, "the child crashed")
        await #expect(throws: failure) {
            try await RetryPolicy(watchHost: { { true } }).settle(
                { () async throws(ScenariosFailure) in throw failure }, onRetry: { _ in Issue.record("repeated") })
        }
    }
}

@Suite struct ThresholdTests {
    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("1s", .seconds(1)), ("0.5s", .milliseconds(500)),
        ("75000us", .microseconds(75_000)), ("20ms", .milliseconds(20)), ("60s", .seconds(60)),
        ("32.5ms", .microseconds(32_500)),
    ])
    func aNumberAndAUnitAreRead(text: String, duration: Duration) throws {
        let threshold = try Threshold(parsing: text)
        #expect(threshold.duration == duration)
        #expect(threshold.description == text)
    }

    @Test(arguments: [
        "", "250", "ms", "s", "abc", "1 s", " 1s", "1.2.3s", "1m", "1h", "0x10ms", "1e3ms", "infs", "nans", "1,5s",
        "٣s", "--1s",
        "1s1s", "１s",
    ])
    func otherTextIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try Threshold(parsing: text) }
        #expect(error?.message.contains("not a duration") == true)
    }

    @Test(arguments: [
        "0ms", "0s", "-5ms", "-0.5s", "1500us", "19.999ms", "60.001s", "99999999999999999999s",
        String(repeating: "9", count: 400) + "s",
    ])
    func aThresholdOutOfRangeIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try Threshold(parsing: text) }
        #expect(error?.message.contains("20ms to 60s") == true)
    }
}

@Suite struct StressRoundsTests {
    private let directory = TemporaryDirectory.ofTest()

    /// Runs the scenario `idle` once, with a shell script as the program.
    private func row(_ script: String) async throws -> StressRounds.Row {
        let path = try directory.write("demo", "#!/bin/sh\nmkdir -p \"$5\"\nsummary=$7\n\(script)\n")
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

    @Test func `a process that dies after its summary has no result`() async throws {
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

@Suite struct ReportInboxTests {
    private func report(_ number: String) throws -> StallReport {
        try StallReport(jsonData: Array(Self.json.replacing("ID", with: id(number)).utf8))
    }

    private func id(_ number: String) -> String {
        "01936c1e-7a52-7c3e-9d0e-00000000000\(number)"
    }

    @Test func eachCallReturnsTheNewReports() async throws {
        let (reports, source) = AsyncStream.makeStream(of: StallReport.self)
        let inbox = ReportInbox()
        await inbox.open(reports)
        source.yield(try report("1"))
        source.yield(try report("2"))
        let first = await inbox.reports(atLeast: 2, within: .seconds(60), settling: .zero)
        #expect(first.map(\.id) == [id("1"), id("2")])
        source.yield(try report("3"))
        source.finish()
        #expect(await inbox.rest().map(\.id) == [id("3")])
        #expect(await inbox.rest().isEmpty)
    }

    @Test func theWaitForAReportIsBounded() async {
        let (reports, source) = AsyncStream.makeStream(of: StallReport.self)
        defer { source.finish() }
        let inbox = ReportInbox()
        await inbox.open(reports)
        #expect(await inbox.reports(atLeast: 1, within: .zero, settling: .zero).isEmpty)
    }

    /// The smallest valid report.
    private static let json = """
        {"schemaVersion": 1, "id": "ID", "kind": "stall", "state": "ended", "startedAt": "2026-11-21T08:00:00.123456Z",
         "durationMilliseconds": 812.4, "repeats": 0, "thresholdMilliseconds": 250, "metadata": {}, "samples": [], "stacks": [],
         "frames": [], "images": [],
         "process": {"name": "notes", "pid": 4700, "executable": "/opt/notes", "architecture": "x86_64",
                     "kernel": "6.18", "hostname": "web-3"},
         "loop": {"label": "main", "kind": "runLoop", "turn": 1, "nesting": 0},
         "monitor": {"version": "0.1.0", "watchdogLateMilliseconds": 0.2, "captureMethods": ["read"], "suppressed": {}}}
        """
}

@Suite struct ChildProcessTests {
    @Test func theOutputOfAChildIsReturned() async throws {
        let child = try ChildProcess(["-c", "echo done"], executable: "/bin/sh")
        #expect(await child.finish(within: .seconds(30)).answer == "done\n")
    }

    @Test func aFailedChildHasAStatusAndItsOutput() async throws {
        let child = try ChildProcess(["-c", "echo half; exit 74"], executable: "/bin/sh")
        let ending = await child.finish(within: .seconds(30))
        #expect(ending.answer == nil)
        #expect(ending.description == "ended with status 74 and wrote 'half\n'")
    }

    @Test func aChildThatDoesNotEndIsKilled() async throws {
        let child = try ChildProcess(["-c", "exec sleep 60"], executable: "/bin/sh")
        #expect(await child.finish(within: .milliseconds(50)).description == "was ended by signal 9 and wrote ''")
    }
}
