import Foundation
import StallWatch
import Testing
import TestSupport

@testable import ScenarioKit
@testable import stallwatch_scenarios

@Suite struct ScenarioTallyTests {
    private func tally(_ results: [(String, ScenarioResult)]) -> ScenarioTally {
        results.reduce(into: ScenarioTally()) { $0.add($1.1, of: $1.0) }
    }

    @Test func everyWrongResultIsAFailure() {
        for result in ScenarioResult.allCases where ![.ok, .notAvailable, .inconclusive].contains(result) {
            #expect(tally([("a", .ok), ("b", result)]).problems == ["1 failed"], "\(result)")
        }
    }

    @Test func aRunThatJudgesNothingFails() {
        #expect(tally([]).problems == ["no scenario was judged"])
        #expect(tally([("a", .notAvailable), ("b", .inconclusive)]).problems == ["no scenario was judged"])
    }

    @Test func tooManyUnavailableScenariosFail() {
        let limit = ScenarioTally.unavailableLimit
        let unavailable = (0...limit).map { ("s\($0)", ScenarioResult.notAvailable) }
        let judged = ("a", ScenarioResult.ok)
        #expect(tally([judged] + unavailable.dropLast()).problems == [])
        #expect(
            tally([judged] + unavailable).problems == [
                "scenarios are not available for 7 reasons, where 6 may be: s0, s1, s2, s3, s4, s5, s6"
            ])
    }

    @Test func aThingThatIsMissingCountsOnce() {
        var tally = tally([("a", .ok)])
        for number in 0..<20 { tally.add(.notAvailable, of: "s\(number)", lacking: "libpng is not installed") }
        #expect(tally.problems == [])
    }

    @Test func tooManyInconclusiveRunsFail() {
        let judged = (0..<98).map { ("s\($0)", ScenarioResult.ok) }
        func inconclusive(_ count: Int) -> [(String, ScenarioResult)] { (0..<count).map { ("i\($0)", .inconclusive) } }
        #expect(tally(judged + inconclusive(2)).problems == [])
        #expect(tally(judged + inconclusive(3)).problems == ["3 runs were inconclusive, where 2 may be"])
        #expect(tally([("a", .ok)] + inconclusive(1)).problems == [])
    }
}

@Suite struct BlameCountsTests {
    private static let swift = """
        final class Store {
            func save(_ note: String) {
                write(note)
            }
        }

        func save<Note>(
            _ note: Note
        ) {
            write(note)
        }
        """
    @Test(arguments: [
        (1, false), (2, true), (3, true), (4, true), (5, false), (6, false), (7, true), (10, true), (11, true),
        (12, false),
    ])
    func lineIsInOneOfTheFunctionsOfThatName(line: Int, isIn: Bool) {
        #expect(SourceFunction.contains(line, of: "Store.save(_:)", inText: Self.swift) == isIn)
        #expect(!SourceFunction.contains(line, of: "Store.load(_:)", inText: Self.swift))
    }

    @Test func functionsAndLinesAreCounted() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("Store.swift", Array(Self.swift.utf8))
        func outcome(_ function: String?, line: Int?) -> Outcome {
            Outcome(
                scenario: "save", expected: .init(function: "Store.save(_:)"), thresholdMilliseconds: 250,
                injected: [500],
                reports: [
                    ReportedStall(
                        file: "a.json", loop: "main", milliseconds: 500, function: function, sourceFile: file,
                        line: line)
                ])
        }
        let quiet = Outcome(scenario: "idle", expected: nil, thresholdMilliseconds: 250, injected: [], reports: [])
        let counts = BlameCounts([
            outcome("Store.save(_:)", line: 3), outcome("Store.save(_:)", line: 12),
            outcome("Store.save(_:)", line: nil), outcome("write(_:)", line: 3), outcome(nil, line: nil), quiet,
        ])
        #expect(counts.line == "3 of 5 functions, 1 of 5 lines")
    }
}

@Suite struct RecordedOutcomeTests {
    private let directory = TemporaryDirectory.ofTest()

    /// An outcome of the first scenario, with the report in ``reportLiteral``.
    private func outcome(reports: [ReportedStall]) -> Outcome {
        Outcome(
            scenario: Scenario.all[0].name, expected: Scenario.all[0].expected, thresholdMilliseconds: 250,
            injected: [812.4, 3], reports: reports, toleratedCause: Scenario.all[0].toleratedCause,
            notCounted: .suspended, suppressedStalls: 2, runnableMilliseconds: 1.5, waitedMilliseconds: 0.5,
            unavailable: "no library", retries: 1
        )
    }

    @Test func summaryGivesTheSameOutcome() throws {
        _ = try directory.write("a.json", Array(reportLiteral.utf8))
        let original = outcome(reports: [try ReportedStall.read("a.json", in: directory.path)])
        let summary = try directory.write("summary.json", try Summary.json([original]))
        let recorded = try RecordedOutcome.read(summary)
        #expect(recorded.map(\.reports) == [[directory.path + "/a.json"]])
        #expect(try recorded.map { try $0.outcome(of: Scenario.all, reportsIn: directory.path) } == [original])
    }
}
