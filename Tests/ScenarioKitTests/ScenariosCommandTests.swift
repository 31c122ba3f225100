import ArgumentParser
import Foundation
import StallReports
import StallWatch
import Testing

@testable import stallwatch_scenarios

@Suite struct ScenariosCommandTests {
    @Test func everyOptionIsRead() throws {
        let command = try ScenariosCommand.parse([
            "--threshold", "1s", "--output", "there", "--summary", "summary.json", "--quiet", "--scenario", "lock",
            "--scenario", "idle", "--scenario", "lock",
        ])
        #expect(command.quiet)
        #expect(try command.selectedScenarios().map(\.name) == ["lock", "idle", "lock"])
        #expect(command.threshold.duration == .seconds(1))
        #expect(command.output == "there")
        #expect(command.summary == "summary.json")
    }

    @Test(arguments: [
        ["--scenario", "nonsense"], ["--scenario", ""], ["--threshold", "0ms"], ["--threshold", "-5ms"],
        ["--threshold", "soon"], ["--threshold", "19.999ms"], ["--threshold", "60.001s"], ["--output", ""],
        ["--summary", ""], ["--judge", ""], ["--load-seconds", "0"],
        ["--soak", "soon"], ["--soak", "0s"], ["--healthy", "soon"], ["--rounds", "0"], ["--rounds", "10001"],
    ])
    func aWrongValueIsNamedInAUsageError(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try ScenariosCommand.parse(arguments) }
        guard let error else { return }
        #expect(ScenariosCommand.exitCode(for: error).rawValue == 64)
        #expect(ScenariosCommand.message(for: error).contains("'\(arguments[1])'"))
    }

    @Test(arguments: [
        ["--seed", "1"], ["--step-clock"], ["--rounds", "2", "--soak", "1m"], ["--healthy", "1m", "--rounds", "2"],
        ["--judge", "summary.json", "--rounds", "2"], ["--threshold"], ["nonsense"],
    ])
    func optionsThatDoNotFitAreUsageErrors(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try ScenariosCommand.parse(arguments) }
        #expect(error.map { ScenariosCommand.exitCode(for: $0).rawValue } == 64)
    }
}

@Suite struct ScenarioTests {
    @Test func namesAreUnique() {
        #expect(Set(Scenario.all.map(\.name)).count == Scenario.all.count)
        #expect(Scenario.all.count > 200)
    }

    @Test func onlyStallsOverTheThresholdNeedAReport() {
        // These two change the threshold.
        let exceptions = ["loop-threshold", "threshold-lowered"]
        for scenario in Scenario.all where !exceptions.contains(scenario.name) {
            if scenario.expected == nil {
                #expect(scenario.stallFactor < 0.7, "\(scenario.name)")
            } else {
                #expect(scenario.stallFactor > 1.05, "\(scenario.name)")
            }
        }
    }

    @Test func everyExpectationCanFail() {
        for scenario in Scenario.all {
            guard let expected = scenario.expected else { continue }
            let judgesStacks = expected.differingSamples || !expected.stacks.isEmpty
            #expect(expected.function != nil || judgesStacks, "\(scenario.name)")
            #expect(expected.count > 0, "\(scenario.name)")
        }
    }

    @Test(arguments: AdviceRule.all.map(\.id))
    func `a rule has a stall that it is right for, a cured twin and a near miss`(rule: String) throws {
        func scenario(_ name: String) throws -> Scenario { try #require(Scenario.all.first { $0.name == name }) }
        let known = try #require(Scenario.adviceCases.first { $0.rule == rule })
        #expect(try scenario(known.right).expected?.advice == rule)
        let near = try #require(try scenario(known.near).expected?.advice)
        #expect(near != rule)
        // A stall of the twin is a false alarm.
        #expect(try scenario("cured-\(rule)").expected == nil)
        #expect(Scenario.adviceCases.count == AdviceRule.all.count)
    }
}
