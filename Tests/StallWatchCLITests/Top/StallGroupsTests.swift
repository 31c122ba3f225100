import Testing

@testable import StallWatchCLI

@Suite struct StallGroupTests {
    private func group(_ reports: [ReportFixture]) throws -> StallGroup {
        var groups = StallGroups()
        for report in reports {
            groups.add(try ReportSummary(json: report.bytes, functions: false), ReportOrigin(path: report.fileName))
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
        #expect(group.cause == "lock")
        #expect(group.loop == "other")
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
