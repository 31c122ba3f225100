import StallReports
import Testing

@testable import stallwatch_scenarios

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
            // No thread is to blame for what no thread does.
            #expect(expected.function != nil || judgesStacks || expected.kind == .notRun, "\(scenario.name)")
            #expect(expected.count > 0, "\(scenario.name)")
        }
    }

    @Test(arguments: AdviceRule.all.map(\.id))
    func `a rule has a stall that it is right for, a cured twin and a near miss`(rule: String) throws {
        func scenario(_ name: String) throws -> Scenario { try #require(Scenario.all.first { $0.name == name }) }
        let known = try #require(Scenario.adviceCases.first { $0.rule == rule })
        #expect(!known.right.isEmpty)
        for name in known.right { #expect(try scenario(name).expected?.advice == rule, "\(name)") }
        let near = try #require(try scenario(known.near).expected?.advice)
        #expect(near != rule)
        // A stall of the twin is a false alarm.
        #expect(try scenario(known.cured).expected == nil)
        #expect(Scenario.adviceCases.count == AdviceRule.all.count)
    }
}
