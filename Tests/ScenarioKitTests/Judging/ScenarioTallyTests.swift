import Foundation
import StallWatch
import Testing
import TestSupport

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

    @Test func tooManyThingsThatAreMissingFail() {
        var tally = tally([("a", .ok)])
        for number in 0..<20 { tally.add(.notAvailable, of: "s\(number)", lacking: "library \(number % 6)") }
        #expect(tally.problems == [])
        tally.add(.notAvailable, of: "b", lacking: "a disk")
        #expect(tally.problems.count == 1)
        #expect(tally.problems[0].hasPrefix("scenarios are not available for 7 reasons, where 6 may be: "))
    }

    @Test func tooManyInconclusiveRunsFail() {
        let judged = (0..<98).map { ("s\($0)", ScenarioResult.ok) }
        func inconclusive(_ count: Int) -> [(String, ScenarioResult)] { (0..<count).map { ("i\($0)", .inconclusive) } }
        #expect(tally(judged + inconclusive(2)).problems == [])
        #expect(tally(judged + inconclusive(3)).problems == ["3 runs were inconclusive, where 2 may be"])
        #expect(tally([("a", .ok)] + inconclusive(1)).problems == [])
    }
}

@Suite struct SummaryTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test func theTableCountsFunctionsAndLines() throws {
        let file = try directory.write(
            "Store.swift",
            Array("class Store {\n    func save(_ note: String) {\n        write(note)\n    }\n}\n".utf8))
        func outcome(_ function: String?, line: Int?) -> Outcome {
            .stub(
                "save", in: "Store.save(_:)",
                [
                    ReportedStall(
                        file: "a.json", loop: "main", milliseconds: 500, function: function, sourceFile: file,
                        line: line)
                ])
        }
        let table = SummaryTable([
            outcome("Store.save(_:)", line: 3), outcome("Store.save(_:)", line: 5),
            outcome("Store.save(_:)", line: nil), outcome("write(_:)", line: 3), outcome(nil, line: nil),
            .stub("idle", in: nil, injected: nil),
        ])
        #expect(
            table.text.hasSuffix(
                """
                4 of 6 ok, 2 failed, 0 not available, 0 inconclusive; 0 run again because the CPUs were taken away
                blamed: 3 of 5 functions, 1 of 5 lines

                """))
    }

    @Test func theSummaryGivesTheSameOutcome() throws {
        _ = try directory.write("a.json", Array(reportLiteral.utf8))
        let original = Outcome(
            scenario: Scenario.all[0].name, expected: Scenario.all[0].expected, thresholdMilliseconds: 250,
            injected: [812.4, 3], reports: [try ReportedStall.read("a.json", in: directory.path)],
            toleratedCause: Scenario.all[0].toleratedCause, notCounted: .suspended, suppressedStalls: 2,
            runnableMilliseconds: 1.5, waitedMilliseconds: 0.5, unavailable: "no library", retries: 1)
        let summary = directory.path("summary.json")
        try SummaryFile(path: summary).write([Summary(outcome: original)])
        #expect(try Outcome.read(summary, of: Scenario.all, reportsIn: directory.path) == [original])
        #expect(Set(directory.names) == ["a.json", "summary.json"])
    }

    @Test(arguments: ["/dev/null", "/", "/proc/version/summary.json"])
    func aPathThatCannotBeAFileIsRefused(path: String) throws {
        let failure = #expect(throws: ScenariosFailure.self) { try SummaryFile(path: path) }
        #expect(failure?.status == .cannotCreate)
        #expect(failure?.sentence.contains(path) == true)
    }
}
