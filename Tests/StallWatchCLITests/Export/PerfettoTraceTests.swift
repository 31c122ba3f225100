import StallReports
import Testing

@testable import StallWatchCLI

@Suite struct LoopTimelineTests {
    private func turn(_ at: Double, _ duration: Double) -> StallReport.Turn {
        StallReport.Turn(atMilliseconds: at, durationMilliseconds: duration, waitedMilliseconds: 0)
    }

    private func history(_ label: String, _ turns: [StallReport.Turn]) -> StallReport.LoopHistory {
        StallReport.LoopHistory(label: label, kind: .init(rawValue: "runLoop"), turns: turns)
    }

    /// Returns a report of a stall of the loop "main" that began that many seconds after a fixed moment.
    private func report(_ seconds: Int, _ loops: [StallReport.LoopHistory]) throws -> StallReport {
        var report = try StackFixture.report(
            300, startedAt: "2026-11-21T08:00:0\(seconds).000000Z", [.init(at: 250, stack: ["save", "main"])])
        report.history = StallReport.History(windowMilliseconds: 5_000, loops: loops)
        return report
    }

    private func timelines(_ reports: [StallReport]) -> [LoopTimeline] {
        var profile = StallProfile()
        for report in reports { profile.add(report) }
        return LoopTimeline.timelines(of: profile)
    }

    /// The begin and duration of each span in milliseconds after the first stall, and whether it is a stall.
    private func shown(_ timeline: LoopTimeline, since: Int64) -> [String] {
        timeline.spans.map { "\(($0.begin - since) / 1_000)+\($0.microseconds / 1_000)\($0.stall == nil ? "" : "!")" }
    }

    @Test func turnsAndStallsAreOnOneLine() throws {
        let first = try report(1, [history("main", [turn(-100, 40), turn(-50, 40)]), history("db", [turn(10, 500)])])
        let found = timelines([first])
        let since = first.startedAt.microsecondsSince1970
        #expect(found.map(\.loop.label) == [first.loop.label, "db"])
        #expect(found.first.map { shown($0, since: since) } == ["-100+40", "-50+40", "0+300!"])
        #expect(found.last.map { shown($0, since: since) } == ["10+500"])
    }

    /// The second report's history has the first stall, and turns that the first report has too.
    @Test func whatTwoReportsHaveIsShownOnce() throws {
        let first = try report(1, [history("main", [turn(-100, 40)])])
        let second = try report(2, [history("main", [turn(-1_100.001, 40), turn(-1_000.001, 300), turn(-200, 10)])])
        let found = timelines([second, first])
        #expect(found.count == 1)
        #expect(
            found.first.map { shown($0, since: first.startedAt.microsecondsSince1970) } == [
                "-100+40", "0+300!", "800+10", "1000+300!",
            ])
    }

    @Test func stallsThatTwoMonitorsReportHaveLanes() throws {
        let found = timelines([try report(1, []), try report(1, [])])
        #expect(found.map(\.loop.lane) == [0, 1])
        #expect(found.allSatisfy { $0.spans.count == 1 })
    }
}
