import Dispatch
import Foundation
import LinuxSupport
import StallReports
import Testing
import TestSupport

@testable import stallwatch_scenarios

/// A run of some scenarios: each stall is reported with the right duration, cause and line, and nothing else is.
///
/// The program repeats what the clock decides while the host takes its CPUs away (``RetryPolicy``). These tests repeat nothing.
///
/// `STALLWATCH_SCENARIOS=.build/release/stallwatch-scenarios swift test --filter ScenarioRunTests` runs all scenarios of another build.
@Suite(.serialized) struct ScenarioRunTests {
    /// Another build of the scenarios, of which all scenarios run.
    private static let otherDemo = ProcessInfo.processInfo.environment["STALLWATCH_SCENARIOS"]

    /// A stall in each kind of callout, and the scenarios that no other test covers: unobserved runs, the
    /// dynamic linker's lock, a thread without a CPU, a pause, another library's loop, changed thresholds, what waited,
    /// a loop that no thread runs.
    ///
    /// `PostureMatrixTests` stall in a computation, a held mutex and a pipe, `OperationTests` wait for a reply that is lost,
    /// `RestTests` stall an event loop, and `DetectionTests` turn healthy loops.
    static let scenarios =
        otherDemo != nil
        ? Scenario.all.map(\.name)
        : [
            "inlined", "main-queue", "perform-block", "nested-private-waits", "nested-private-works",
            "nested-private-stalls", "loader-lock", "under-load", "starved", "paused", "main-actor-at-once",
            "operation-actor-blocked", "operation-semaphore", "two-monitors", "threshold-lowered", "threshold-raised",
            "victims-timers", "victims-blocks", "victims-none", "victims-counted", "victims-skipped-firings",
            "victims-slow-blocks", "victims-slow-timers", "victims-due-before",
            "not-run", "not-run-start-up", "not-run-async-main", "not-run-async-main-queue",
        ] + eventLoopScenarios

    #if NIO
        private static let eventLoopScenarios = ["nio-loop-busy"]
    #else
        private static let eventLoopScenarios: [String] = []
    #endif

    /// Scenarios that only wait, for a process of their own beside the one of the others: one at most computes.
    private static let waiting = [
        "not-run", "not-run-async-main", "not-run-async-main-queue", "main-actor-at-once", "operation-actor-blocked",
        "operation-semaphore", "two-monitors",
    ]
    /// The scenarios that want every CPU; they run when the others are over.
    private static let computing = ["under-load", "starved"]

    /// What runs at the same time, and then what runs alone.
    private static let lanes: (together: [[String]], alone: [String]) = {
        guard otherDemo == nil else { return ([scenarios], []) }
        let others = scenarios.filter { !(waiting + computing).contains($0) }
        return ([waiting, others], computing)
    }()

    private static let run = Result { try Run(program: otherDemo ?? Command.product("stallwatch-scenarios")) }

    private struct Run {
        struct Row: Decodable, Sendable {
            var scenario: String
            var result: ScenarioResult
            var expectsReport: Bool
            var expectedFunction: String?
            var report: String?
            var run: Outcome
        }

        /// Some 5 minutes for all scenarios of a debug build, with room for repetitions.
        static let timeout: TimeInterval = 900

        /// The process of a lane.
        private struct Part: Sendable {
            let output: Command.Output
            let rows: [Row]
            let reports: String

            init(_ scenarios: [String], program: String, in directory: String) throws {
                let summary = directory + "/summary.json"
                reports = directory + "/reports"
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
                output = try Command(
                    program: program,
                    arguments: scenarios.flatMap { ["--scenario", $0] }
                        + ["--output", reports, "--summary", summary, "--load-seconds", "2"],
                    timeout: Run.timeout
                ).run()
                print(output.output)
                rows = try JSONDecoder().decode([Row].self, from: Data(contentsOf: URL(fileURLWithPath: summary)))
            }
        }

        let outputs: [Command.Output]
        let rows: [Row]
        let validations: [Command.Output]

        init(program: String) throws {
            let directory = try TemporaryDirectory()
            let (together, alone) = ScenarioRunTests.lanes
            let results = Collected<Result<Part, any Error>>()
            let group = DispatchGroup()
            for (index, scenarios) in together.enumerated() {
                DispatchQueue(label: "lane \(index)").async(group: group) {
                    results.add(
                        Result { try Part(scenarios, program: program, in: directory.path("\(index)")) })
                }
            }
            group.wait()
            var parts = try results.all.map { try $0.get() }
            if !alone.isEmpty { parts.append(try Part(alone, program: program, in: directory.path("alone"))) }
            outputs = parts.map(\.output)
            rows = parts.flatMap(\.rows)
            validations = try parts.map { try Repository.validateReports($0.reports) }
            contents = try rows.reduce(into: [:]) { contents, row in
                guard let report = row.report else { return }
                contents[row.scenario] = try Data(contentsOf: URL(fileURLWithPath: report))
            }
        }

        let contents: [String: Data]
    }

    @Test func theRunPassesWithValidReports() throws {
        let run = try Self.run.get()
        for output in run.outputs { #expect(output.status == 0, "\(output.text)") }
        // Each process has passed by these limits on results that judge nothing, and all together have those of one.
        let tally = run.rows.reduce(into: ScenarioTally()) { tally, row in
            tally.add(row.result, of: row.scenario, lacking: row.run.unavailable)
        }
        #expect(tally.unjudgedProblems == [])
        #expect(run.rows.map(\.scenario).sorted() == Self.scenarios.sorted())
        for validation in run.validations { validation.expectNoFault() }
    }

    @Test(arguments: scenarios) func aScenarioHasTheRightReport(scenario: String) throws {
        let run = try Self.run.get()
        let row = try #require(run.rows.first { $0.scenario == scenario })
        if row.result == .notAvailable || row.result == .inconclusive {
            return notRun("\(scenario) is \(row.result.rawValue)")
        }
        #expect(row.result == .ok)
        #expect((row.report != nil) == row.expectsReport)
        guard let data = run.contents[scenario] else { return }
        try expectRightLine(in: StallReport(jsonData: Array(data)), row)
    }

    /// Expects that the culprit has the file and a line of the function that stalls, inlined or not.
    private func expectRightLine(in report: StallReport, _ row: Run.Row) throws {
        guard let function = row.expectedFunction else { return }
        let culprit = try #require(report.culprit, "\(row.scenario)")
        #expect(
            SourceFunction.contains(culprit.line ?? 0, of: function, in: culprit.file ?? ""),
            "\(row.scenario): the report puts \(function) at \(culprit.file ?? "?"):\(culprit.line ?? 0)"
        )
    }
}

extension ChildProcess {
    func result() async throws -> HostResult? {
        try await finish(within: .seconds(300)).result()
    }

    /// Returns the number of voluntary context switches of the thread with this name (proc(5)).
    func wakeUps(ofThread name: String) -> Int? { wakeUps { $0 == name }.values.first }

    /// Returns the number of voluntary context switches of each thread whose name is wanted, by name and id.
    func wakeUps(_ isWanted: (String) -> Bool) -> [String: Int] {
        let directory = "/proc/\(id)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        var counts: [String: Int] = [:]
        for thread in threads {
            let name = (readSmallFile("\(directory)/\(thread)/comm") ?? "").trimmingCharacters(in: .newlines)
            guard isWanted(name) else { continue }
            let line = readSmallFile("\(directory)/\(thread)/status")?.split(separator: "\n")
                .first { $0.hasPrefix("voluntary_ctxt_switches:") }
            counts["\(name) \(thread)"] = line?.split(separator: "\t").last.flatMap { Int($0) }
        }
        return counts
    }
}

func withDirectory<Result>(_ body: (String) async throws -> Result) async throws -> Result {
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    return try await body(directory.path)
}
