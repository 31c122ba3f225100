import Foundation
import StallReports
import TestSupport
import Testing

@testable import stallwatch_demo

/// The demo as it is run by hand: each stall is reported, timed and blamed right, and what is no stall is not reported.
///
/// `STALLWATCH_DEMO=.build/release/stallwatch-demo swift test --filter DemoTests` asks the same of all scenarios of another
/// build of the demo.
@Suite(.serialized, .repeatedWhileCPUIsStolen) struct DemoTests {
    /// Another build of the demo, of which all scenarios run.
    private static let otherDemo = ProcessInfo.processInfo.environment["STALLWATCH_DEMO"]

    /// Scenarios of a main run loop: the stalls of each kind of callout, and what must give no report; and those that have
    /// no other test: runs that nobody observes, a stall that holds the dynamic linker's lock, a thread that gets no CPU, a
    /// pause that the app asked for, another library's loop.
    static let scenarios =
        otherDemo != nil
        ? Scenario.all.map(\.name)
        : [
            "cpu-spin", "inlined", "sleep", "lock", "pipe-read", "timer", "source0", "main-queue", "perform-block",
            "idle", "healthy-storm", "short", "busy-timers",
            "nested-private-waits", "nested-private-works", "nested-private-stalls", "loader-lock", "under-load",
            "starved", "paused",
        ] + eventLoopScenarios

    #if NIO
        private static let eventLoopScenarios = ["nio-loop-blocked", "nio-loop-busy"]
    #else
        private static let eventLoopScenarios: [String] = []
    #endif

    private static let sources = Result { try DemoSources() }

    private struct Row: Decodable {
        var scenario: String
        var verdict: String
        var expectsReport: Bool
        var expectedFunction: String?
        var report: String?
    }

    @Test(arguments: scenarios) func theVerdictIsRight(scenario: String) throws {
        let directory = try TemporaryDirectory()
        let summary = directory.path("summary.json")
        let result = try Command(
            program: try Self.otherDemo ?? Command.product("stallwatch-demo"),
            arguments: [
                "--scenario", scenario, "--quiet", "--output", directory.path("reports"), "--summary", summary,
            ]
        ).run()
        #expect(result.status == 0, "\(result.text)")
        let rows = try JSONDecoder().decode([Row].self, from: Data(contentsOf: URL(fileURLWithPath: summary)))
        #expect(rows.map(\.scenario) == [scenario])
        let row = try #require(rows.first)
        #expect(["ok", "not-available"].contains(row.verdict), "\(row.verdict)")
        guard row.verdict == "ok" else { return }
        #expect((row.report != nil) == row.expectsReport)
        guard let report = row.report else { return }
        try expectRightLine(in: report, row, Self.sources.get())
        let validation = try Repository.validateReports(directory.path("reports"))
        #expect(validation.status == 0, "\(validation.text)")
    }

    /// What is blamed has the file and a line of the function that stalls, inlined or not.
    private func expectRightLine(in file: String, _ row: Row, _ sources: DemoSources) throws {
        let report = try StallReport(jsonData: Array(Data(contentsOf: URL(fileURLWithPath: file))))
        guard let function = row.expectedFunction else { return }
        let culprit = try #require(report.culprit, "\(row.scenario)")
        #expect(
            sources.contain(function: function, file: culprit.file ?? "", line: culprit.line ?? 0),
            "\(row.scenario): \(function) is said to be at \(culprit.file ?? "?"):\(culprit.line ?? 0)"
        )
    }
}
