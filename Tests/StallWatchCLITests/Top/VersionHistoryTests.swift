import Foundation
import Glibc
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct VersionHistoryTests {
    private static func versions(_ hours: [Double]) -> [VersionHistory.Version] {
        hours.enumerated().map { .init(name: "1.\($0.offset)", hours: $0.element) }
    }

    @Test(
        arguments: [
            ([0, 5], [10, 10], .new), ([5, 0], [10, 10], .gone), ([5, 0, 4], [10, 10, 10], .regressed),
            // The versions without it ran for too short a time.
            ([0, 1], [2, 1], nil), ([5, 0], [10, 5], nil), ([5, 0, 4], [10, 5, 10], nil),
            // The time of several versions counts together.
            ([5, 0, 0], [10, 5, 1], .gone), ([0, 0, 6], [1, 2, 4], .new), ([5, 0, 0, 1], [10, 3, 3, 1], .regressed),
            ([5, 9], [10, 10], nil), ([5], [10], nil), ([], [], nil), ([0, 0], [1, 1], nil),
            // An old gap, before it came back once: it is there now as it was before.
            ([5, 0, 5, 5], [10, 10, 10, 10], nil),
        ] as [([Int], [Double], VersionHistory.Change?)])
    func `a change is what the versions had the time to show`(
        counts: [Int], hours: [Double], change: VersionHistory.Change?
    ) {
        #expect(VersionHistory.change(counts, Self.versions(hours)) == change)
    }

    @Test func `the interval of a rate is that of a Poisson count`() {
        // Exact limits of 0, 1, 10 and 100 events: 0 to 3.69, 0.025 to 5.57, 4.80 to 18.39, 81.4 to 121.6.
        for (count, low, high) in [(0, 0, 3.69), (1, 0.025, 5.57), (10, 4.8, 18.39), (100, 81.4, 121.6)] {
            let rate = HourlyRate(count: count, hours: 2)
            #expect(rate.perHour == Double(count) / 2)
            #expect(abs(rate.low - low / 2) < 0.03 * max(low, 1), "\(rate)")
            #expect(abs(rate.high - high / 2) < 0.03 * high, "\(rate)")
        }
        #expect(HourlyRate(count: 1, hours: 0).perHour == 3_600)
    }

    /// Three versions of ten hours each: one stall in all of them, one new, one gone, one regressed.
    private func folder() throws -> TemporaryDirectory {
        let scratch = try TemporaryDirectory()
        var reports: [ReportFixture] = []
        for (day, version) in ["1.2", "1.3", "1.4"].enumerated() {
            for (kind, function) in ["save()", "layOut()", "load(from:)", "index()"].enumerated() {
                let isSeen = [[true, true, true], [false, false, true], [true, false, false], [true, false, true]]
                guard isSeen[kind][day] else { continue }
                for number in 0..<4 {
                    reports.append(
                        ReportFixture(
                            number: reports.count, startedAt: "2026-11-2\(day)T1\(number):0\(kind):00.000000Z",
                            milliseconds: 500 - Double(kind) * 50, pid: Int32(4700 + day),
                            metadata: ["version": version],
                            fingerprint: "\(kind)f2c41d07a3be815", function: function, startTicks: UInt64(day)))
                }
            }
        }
        for report in reports {
            let start = "2026-11-2\(report.pid - 4700)T07:00"
            try scratch.write(report.fileName, report.json.replacingOccurrences(of: "2026-11-21T07:00", with: start))
        }
        return scratch
    }

    @Test(arguments: [60, 120]) func `the table is as expected`(columns: Int) throws {
        let result = try Tool.run(["top", ".", "--history"], in: try folder(), environment: ["COLUMNS": "\(columns)"])
        #expect(result.status == 0 && result.errors == "")
        try ExpectedTexts.screens.expect(result.output, "history-\(columns)")
        #expect(result.output.split(separator: "\n").allSatisfy { $0.count <= columns })
    }

    @Test func `changes of groups without a row are counted`() throws {
        let result = try Tool.run(["top", ".", "--history", "-n", "1"], in: try folder())
        let counts = "…and 3 more: --limit 4 shows all. 1 new, 1 gone, 1 regressed in version 1.4, the newest of 3."
        #expect(result.output.contains(counts), "\(result)")
    }

    @Test func `JSON has the same, and the time of the statistics`() throws {
        let scratch = try folder()
        try scratch.write(
            "statistics.json",
            #"{"suppressed": {}, "loops": [{"label": "main", "watchedSeconds": 144000, "turns": 9}]}"#)
        let result = try Tool.run(["top", ".", "--history", "--json"], in: scratch)
        let top = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        #expect(top["hours"] as? Double == 40 && top["hoursFrom"] as? String == "statistics")
        let groups = try #require(top["groups"] as? [[String: Any]])
        #expect(groups.compactMap { $0["change"] as? String }.sorted() == ["gone", "new", "regressed"])
        let all = try #require(groups.first { $0["change"] == nil })
        #expect(all["versions"] as? [String] == ["1.2", "1.3", "1.4"] && all["count"] as? Int == 12)
        #expect((all["rate"] as? [String: Double])?["perHour"] == 0.3)
    }

    @Test(arguments: [([], "reports"), (["--since", "2026-11-20"], "reports")])
    func `statistics of a part of the time are not taken for all of it`(filter: [String], source: String) throws {
        let scratch = try folder()
        // Of the last run, as the monitor writes them; and much more than of the last days.
        let seconds = filter.isEmpty ? 60 : 9_000_000
        try scratch.write(
            "statistics.json",
            #"{"suppressed": {}, "loops": [{"label": "main", "watchedSeconds": \#(seconds), "turns": 9}]}"#)
        let result = try Tool.run(["top", ".", "--history", "--json"] + filter, in: scratch)
        let top = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        #expect(top["hoursFrom"] as? String == source)
    }

    @Test func `time before the period does not count`() throws {
        let report = try ReportSummary(json: ReportFixture(number: 1).bytes)
        let minute: Int64 = 60_000_000
        var spans = ProcessSpans(
            ReportFilter(since: .init(microsecondsSince1970: report.startedAt.microsecondsSince1970 - minute)))
        spans.add(report)
        let expected = (60_000 + report.durationMilliseconds) / 3_600_000
        #expect(abs(spans.hours - expected) < 1e-9)
    }

    @Test func `one version has no history`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1, metadata: [:])])
        #expect(try Tool.run(["top", ".", "--history"], in: scratch).output.contains("fewer than two versions"))
    }
}

@Suite struct StallGroupTests {
    private func group(_ reports: [ReportFixture]) throws -> StallGroup {
        var groups = StallGroups()
        for report in reports {
            groups.add(try ReportSummary(json: report.bytes), ReportOrigin(path: report.fileName))
        }
        return try #require(groups.all.first)
    }

    @Test(arguments: [(0.0, 100.0), (0.01, 100), (0.5, 1_000), (0.95, 1_900), (0.951, 2_000), (1, 2_000)])
    func quantilesAreNearestRanks(quantile: Double, milliseconds: Double) throws {
        let group = try group((1...20).map { ReportFixture(number: $0, milliseconds: Double($0) * 100) })
        #expect(group.milliseconds(quantile: quantile) == milliseconds)
    }

    @Test func theCulpritOfMostTimeIsShown() throws {
        let group = try group([
            ReportFixture(number: 1, milliseconds: 100, function: "a()", cause: "cpu"),
            ReportFixture(number: 2, milliseconds: 100, function: "a()", cause: "cpu"),
            ReportFixture(number: 3, milliseconds: 300, loop: "other", repeats: 4, function: "b()", cause: "lock"),
        ])
        #expect(group.culprit?.function == "b()")
        #expect(group.cause == "lock" && group.loop == "other", "\(group)")
        #expect(group.loopCount == 2)
        #expect(group.count == 7 && group.reports == 3 && group.repeats == 4)
        #expect(group.totalMilliseconds == 200 + 5 * 300 && group.isEstimated, "of an older version")
        #expect(group.longest?.id == ReportFixture(number: 3).id)
    }

    @Test func `repeats count with their own durations`() throws {
        let group = try group([
            ReportFixture(number: 1, milliseconds: 100),
            ReportFixture(number: 2, milliseconds: 300, repeats: 4, repeated: [2_000, 350, 900]),
        ])
        #expect(group.count == 6 && group.totalMilliseconds == 2_400 && !group.isEstimated)
        #expect(group.maximumMilliseconds == 900)
        #expect(group.longest?.milliseconds == 300, "the longest that has a report")
    }

    /// The order of a dictionary differs from run to run.
    @Test func tiesAreBrokenByName() {
        var tally = Tally<String>()
        for name in ["d", "b", "a", "c"] { tally.add(name, 1) }
        #expect(tally.heaviest { $0 < $1 } == "a")
    }

    @Test func worseIsMoreThanChance() {
        func side(_ count: Int, _ median: Double) -> GroupChange.Side {
            GroupChange.Side(
                count: count, totalMilliseconds: Double(count) * median, medianMilliseconds: median, hours: 10)
        }
        #expect(!GroupChange.isMore(side(5, 500), than: side(3, 500), tolerance: 0.25))
        #expect(GroupChange.isMore(side(30, 500), than: side(10, 500), tolerance: 0.25))
        #expect(GroupChange.isMore(side(3, 700), than: side(3, 500), tolerance: 0.25))
        #expect(!GroupChange.isMore(side(3, 600), than: side(3, 500), tolerance: 0.25))
        // The stalls are longer, but so much rarer that less time is lost.
        #expect(!GroupChange.isMore(side(1, 700), than: side(3, 500), tolerance: 0.25))
    }
}
