import Testing

@testable import stallwatch_demo

@Suite struct ScenarioTests {
    @Test func namesAreUnique() {
        #expect(Set(Scenario.all.map(\.name)).count == Scenario.all.count)
    }

    @Test func thePromisedScenariosAreThere() {
        #expect(
            Set(Scenario.stallingScenarios.map(\.name)).isSuperset(of: [
                "cpu-spin", "sleep", "lock", "pipe-read", "timer", "source0", "main-queue", "perform-block",
            ])
        )
        #expect(
            Set(Scenario.quietScenarios.map(\.name)).isSuperset(of: ["idle", "healthy-storm", "short", "busy-timers"])
        )
    }

    @Test func onlyStallsOverTheThresholdAreExpectedToBeReported() {
        for scenario in Scenario.stallingScenarios {
            #expect(scenario.expected != nil, "\(scenario.name)")
            #expect(scenario.stallFactor > 1.5, "\(scenario.name)")
        }
        for scenario in Scenario.quietScenarios {
            #expect(scenario.expected == nil, "\(scenario.name)")
            #expect(scenario.stallFactor < 0.7, "\(scenario.name)")
        }
    }

    @Test func theListHasALineAScenario() {
        let lines = Scenario.list(Scenario.all).split(separator: "\n")
        #expect(lines.count == Scenario.all.count)
        for (line, scenario) in zip(lines, Scenario.all) { #expect(line.hasPrefix(scenario.name + " ")) }
        #expect(lines.contains { $0.hasSuffix("(reported in spinTheCPU(for:))") })
        #expect(lines.contains { $0.hasSuffix("(no report)") })
    }
}
