import Testing

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
