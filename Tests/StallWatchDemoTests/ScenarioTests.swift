import StallWatch
import Testing

@testable import stallwatch_demo

@Suite struct ScenarioTests {
    @Test func namesAreUnique() {
        #expect(Set(Scenario.all.map(\.name)).count == Scenario.all.count)
    }

    @Test func thePromisedScenariosAreThere() {
        #expect(
            Set(Scenario.all.filter { $0.expected != nil }.map(\.name)).isSuperset(of: [
                "cpu-spin", "inlined", "sleep", "lock", "pipe-read", "timer", "source0", "main-queue", "perform-block",
                "mode-switch",
                "nested-stalls", "resident-thread", "run-until-loop", "gap-between-runs", "burst-main-queue",
                "saturated",
                "main-actor", "dispatch-main", "global-queue-full", "cooperative-pool-blocked", "glib-loop",
                "deep-recursion",
            ])
        )
        #expect(
            Set(Scenario.all.filter { $0.expected == nil }.map(\.name)).isSuperset(of: [
                "idle", "healthy-storm", "short", "busy-timers", "nested-waits", "sigstop",
            ])
        )
        #expect(Scenario.all.count >= 60)
    }

    @Test func onlyStallsOverTheThresholdAreExpectedToBeReported() {
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
            #expect(expected.function != nil || expected.differingSamples, "\(scenario.name)")
            #expect(expected.count > 0, "\(scenario.name)")
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
