import Foundation
import Testing

/// The demo as it is run by hand: each stall is reported, timed and blamed right, and what is no stall is not reported.
@Suite(.serialized) struct DemoTests {
    /// Scenarios of a main run loop: the stalls of each kind of callout, and what must give no report; and those that have
    /// no other test: runs that nobody observes, a stall that holds the dynamic linker's lock, another library's loop.
    static let scenarios =
        [
            "cpu-spin", "sleep", "lock", "pipe-read", "timer", "source0", "main-queue", "perform-block",
            "idle", "healthy-storm", "short", "busy-timers",
            "nested-private-waits", "nested-private-works", "nested-private-stalls", "loader-lock", "under-load",
        ] + eventLoopScenarios

    #if NIO
        private static let eventLoopScenarios = ["nio-loop-blocked", "nio-loop-busy"]
    #else
        private static let eventLoopScenarios: [String] = []
    #endif

    private struct Row: Decodable {
        var scenario: String
        var verdict: String
        var expectsReport: Bool
        var report: String?
    }

    @Test func everyVerdictIsRight() throws {
        let directory = try TemporaryDirectory()
        let summary = directory.path("summary.json")
        let result = try Command(
            program: try Command.product("stallwatch-demo"),
            arguments: Self.scenarios.flatMap { ["--scenario", $0] }
                + ["--quiet", "--output", directory.path("reports"), "--summary", summary]
        ).run()
        #expect(result.status == 0, "\(result.text)")
        let rows = try JSONDecoder().decode([Row].self, from: Data(contentsOf: URL(fileURLWithPath: summary)))
        #expect(rows.map(\.scenario).sorted() == Self.scenarios.sorted())
        #expect(rows.filter { $0.verdict != "ok" }.map { "\($0.scenario): \($0.verdict)" } == [])
        for row in rows {
            #expect((row.report != nil) == row.expectsReport)
            if let report = row.report { #expect(FileManager.default.fileExists(atPath: report)) }
        }
    }
}
