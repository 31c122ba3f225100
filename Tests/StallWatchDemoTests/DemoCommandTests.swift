import ArgumentParser
import StallWatch
import Testing

@testable import stallwatch_demo

@Suite struct DemoCommandTests {
    @Test func allScenariosRunByDefault() throws {
        let command = try DemoCommand.parse([])
        #expect(try command.selectedScenarios().map(\.name) == Scenario.all.map(\.name))
        #expect(command.threshold == .standard)
        #expect(command.output == "stalls")
        #expect(command.summary == nil)
        #expect(command.loadSeconds == 5)
        #expect(!command.quiet && !command.list)
    }

    @Test func chosenScenariosKeepTheirOrderAndNumber() throws {
        let command = try DemoCommand.parse(["--scenario", "lock", "--scenario", "idle", "--scenario", "lock"])
        #expect(try command.selectedScenarios().map(\.name) == ["lock", "idle", "lock"])
    }

    @Test func everyOptionIsRead() throws {
        let command = try DemoCommand.parse([
            "--list", "--threshold", "1s", "--output", "there", "--summary", "summary.json", "--quiet",
        ])
        #expect(command.list && command.quiet)
        #expect(command.threshold.duration == .seconds(1))
        #expect(command.output == "there")
        #expect(command.summary == "summary.json")
    }

    @Test(arguments: [
        ["--scenario", "nonsense"], ["--scenario", ""], ["--threshold", "0ms"], ["--threshold", "-5ms"],
        ["--threshold", "soon"], ["--output", ""], ["--summary", ""], ["--judge", ""], ["--load-seconds", "0"],
        ["--soak", "soon"], ["--soak", "0s"], ["--rounds", "0"], ["--rounds", "10001"],
    ])
    func aWrongValueIsNamedInAUsageError(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try DemoCommand.parse(arguments) }
        guard let error else { return }
        #expect(DemoCommand.exitCode(for: error).rawValue == 64)
        #expect(DemoCommand.message(for: error).contains("'\(arguments[1])'"))
    }

    @Test func aSoakHasALengthAndASeed() throws {
        let command = try DemoCommand.parse(["--soak", "30m", "--seed", "42", "--step-clock", "--scenario", "idle"])
        #expect(command.soak?.duration == .seconds(1800))
        #expect(command.seed == 42)
        #expect(command.stepClock)
        #expect(try !DemoCommand.parse(["--soak", "8h"]).stepClock)
    }

    @Test func judgingRunsNothing() throws {
        let command = try DemoCommand.parse(["--judge", "summary.json", "--output", "there"])
        #expect(command.judge == "summary.json")
        for option in [["--scenario", "idle"], ["--soak", "1m"], ["--rounds", "2"], ["--summary", "other.json"]] {
            #expect(throws: (any Error).self) { try DemoCommand.parse(["--judge", "summary.json"] + option) }
        }
    }

    @Test(arguments: [["--seed", "1"], ["--step-clock"], ["--rounds", "2", "--soak", "1m"]])
    func optionsThatDoNotFitAreUsageErrors(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try DemoCommand.parse(arguments) }
        #expect(error.map { DemoCommand.exitCode(for: $0).rawValue } == 64)
    }

    @Test func anUnknownScenarioIsRefusedWithAllNames() {
        let error = #expect(throws: (any Error).self) { try DemoCommand.parse(["--scenario", "nonsense"]) }
        guard let error else { return }
        for scenario in Scenario.all { #expect(DemoCommand.message(for: error).contains(scenario.name)) }
    }

    @Test(arguments: [["--threshold"], ["--scenario"], ["--nonsense"], ["nonsense"]])
    func anUnknownOptionIsAUsageError(arguments: [String]) {
        let error = #expect(throws: (any Error).self) { try DemoCommand.parse(arguments) }
        guard let error else { return }
        #expect(DemoCommand.exitCode(for: error).rawValue == 64)
    }
}
