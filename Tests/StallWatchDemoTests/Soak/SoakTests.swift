import ArgumentParser
import Testing

@testable import stallwatch_demo

@Suite struct ScenarioRoundsTests {
    private func turns(_ count: Int, seed: UInt64, of scenarios: [Scenario] = Scenario.all) -> [ScenarioRounds.Turn] {
        var rounds = ScenarioRounds(scenarios, seed: seed)
        return (0..<count).map { _ in rounds.next() }
    }

    @Test func aSeedAlwaysGivesTheSameOrder() {
        let first = turns(300, seed: 42)
        let again = turns(300, seed: 42)
        #expect(first.map(\.scenario.name) == again.map(\.scenario.name))
        #expect(first.map(\.startsCold) == again.map(\.startsCold))
        #expect(first.map(\.scenario.name) != turns(300, seed: 43).map(\.scenario.name))
    }

    @Test func eachRoundHasEveryScenarioOnce() {
        let count = Scenario.all.count
        let names = turns(count * 2, seed: 1).map(\.scenario.name)
        let first = names.prefix(count)
        let second = names.suffix(count)
        #expect(first.sorted() == Scenario.all.map(\.name).sorted())
        #expect(second.sorted() == first.sorted())
        #expect(Array(second) != Array(first))
    }

    @Test func aRoundEndsWhenTheNextOneBegins() {
        var rounds = ScenarioRounds(Array(Scenario.all.prefix(2)), seed: 1)
        let completed = (0..<5).map { _ in
            _ = rounds.next()
            return rounds.completed
        }
        #expect(completed == [0, 0, 1, 1, 2])
    }

    @Test func aQuarterOfTheScenariosStartsCold() {
        let cold = turns(1000, seed: 7).count { $0.startsCold }
        #expect((200...300).contains(cold), "one in \(ScenarioRounds.turnsPerColdStart)")
    }
}

@Suite struct SoakLengthTests {
    @Test(arguments: [("1s", 1), ("600s", 600), ("30m", 1800), ("8h", 28800), ("168h", 604_800)])
    func aNumberAndAUnitAreRead(text: String, seconds: Int) throws {
        let length = try SoakLength(parsing: text)
        #expect(length.duration == .seconds(seconds))
        #expect(length.description == text)
    }

    @Test(arguments: [
        "", "m", "30", "30 m", "-5m", "+5m", "1.5h", "500ms", "1h30m", "0s", "169h", "٣m", "9999999999999999999h",
        "9999999999999999h",
    ])
    func otherTextIsRefused(text: String) {
        #expect(throws: ValidationError.self) { try SoakLength(parsing: text) }
    }
}
