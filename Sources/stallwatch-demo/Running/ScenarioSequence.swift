import StallWatch

/// The demo's run: scenarios in their order, each once, with a line for each.
struct ScenarioSequence: Sendable {
    let scenarios: [Scenario]
    let runner: ScenarioRunner
    let progress: Progress

    /// Runs them all and stops the monitor.
    ///
    /// - Throws: When a report could not be written or read.
    func run() async throws(DemoFailure) -> [Outcome] {
        do throws(DemoFailure) {
            return try await runAll()
        } catch {
            // If this fails, too, the failure that comes first is the one to tell of.
            try? progress.abandon()
            throw error
        }
    }

    private func runAll() async throws(DemoFailure) -> [Outcome] {
        var outcomes: [Outcome] = []
        for (index, scenario) in scenarios.enumerated() {
            try progress.begin(scenario, index, stall: runner.stall(of: scenario))
            let outcome = try await runner.run(scenario)
            try progress.finish(outcome, index)
            outcomes.append(outcome)
        }
        let late = try await runner.finish()
        if !outcomes.isEmpty { outcomes[outcomes.count - 1].reports += late }
        return outcomes
    }
}
