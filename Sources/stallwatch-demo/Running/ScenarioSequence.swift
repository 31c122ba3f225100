/// The demo's run: each scenario once, in order, with a line for each.
struct ScenarioSequence: Sendable {
    let scenarios: [Scenario]
    let runner: ScenarioRunner
    let progress: Progress

    /// Runs all scenarios and stops the monitor.
    ///
    /// - Throws: `DemoFailure` if a scenario fails, or if a report cannot be written or read.
    func run() async throws(DemoFailure) -> [Outcome] {
        do throws(DemoFailure) {
            return try await runAll()
        } catch {
            // The first failure is the one to report, even if this fails too.
            try? progress.abandon()
            throw error
        }
    }

    private func runAll() async throws(DemoFailure) -> [Outcome] {
        var outcomes: [Outcome] = []
        for (index, scenario) in scenarios.enumerated() {
            try progress.begin(scenario, index, stall: runner.stall(of: scenario))
            let outcome = try await runner.judge(scenario) { outcome throws(DemoFailure) in
                try progress.repeats(outcome, index)
            }
            try progress.finish(outcome, index)
            outcomes.append(outcome)
        }
        let late = try await runner.finish()
        if !outcomes.isEmpty { outcomes[outcomes.count - 1].reports += late }
        return outcomes
    }
}
