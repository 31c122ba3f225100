import StallReports
import Testing

@testable import stallwatch_demo

@Suite struct ReportInboxTests {
    private func report(_ id: String) throws -> StallReport {
        try StallReport(jsonData: Array(Self.json.replacing("ID", with: id).utf8))
    }

    @Test func eachCallReturnsTheNewReports() async throws {
        let (reports, source) = AsyncStream.makeStream(of: StallReport.self)
        let inbox = ReportInbox()
        await inbox.open(reports)
        source.yield(try report("1"))
        source.yield(try report("2"))
        let first = await inbox.reports(atLeast: 2, within: .seconds(60), settling: .zero)
        #expect(first.map(\.id) == ["1", "2"])
        source.yield(try report("3"))
        source.finish()
        #expect(await inbox.rest().map(\.id) == ["3"])
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
