import Testing

@testable import stallwatch_demo

@Suite struct ScenarioTallyTests {
    private func tally(_ results: [(String, ScenarioResult)]) -> ScenarioTally {
        results.reduce(into: ScenarioTally()) { $0.add($1.1, of: $1.0) }
    }

    @Test func rightResultsHaveNoProblem() {
        var tally = tally([("a", .ok), ("b", .ok)])
        tally.add(.ok, of: "a", retries: 2)
        #expect(tally.problems == [])
        #expect(
            tally.line
                == "3 of 3 ok, 0 failed, 0 not available, 0 inconclusive; 2 run again because the CPUs were taken away"
        )
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
            tally([judged] + unavailable).problems == ["4 scenarios are not available, where 3 may be: s0, s1, s2, s3"])
    }

    @Test func aScenarioThatWasJudgedOnceIsAvailable() {
        let repeated = (0..<20).map { _ in ("lazy-global", ScenarioResult.notAvailable) }
        #expect(tally([("lazy-global", .ok)] + repeated).problems == [])
    }

    @Test func tooManyInconclusiveRunsFail() {
        let judged = (0..<98).map { ("s\($0)", ScenarioResult.ok) }
        func inconclusive(_ count: Int) -> [(String, ScenarioResult)] { (0..<count).map { ("i\($0)", .inconclusive) } }
        #expect(tally(judged + inconclusive(2)).problems == [])
        #expect(tally(judged + inconclusive(3)).problems == ["3 runs were inconclusive, where 2 may be"])
        #expect(tally([("a", .ok)] + inconclusive(1)).problems == [])
    }
}
