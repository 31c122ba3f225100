import Glibc
import LinuxSupport
import StallWatch

/// Scenarios for a long time, in an order that a seed gives, in a program that does everything else beside it that programs do.
///
/// What is judged, beside each scenario as the demo does it: that the process does not grow, leaves no child behind, and that
/// no call of its threads was interrupted or returned early.
struct Soak: Sendable {
    let length: SoakLength
    let seed: UInt64
    let scenarios: [Scenario]
    /// Whether the machine's wall clock may be changed.
    let stepsClock: Bool
    let runner: ScenarioRunner
    let interruption: Interruption

    /// What part of the time only warms up; one whole round at least.
    static let warmUp = 1.0 / 6
    /// How often a scenario runs in all while the machine's host takes its CPUs away; the last time counts, whatever comes of it.
    static let maximumAttempts = 5

    /// Runs it, with a line for each failure and each round, and stops the monitor.
    ///
    /// - Throws: When a scenario cannot run at all, or a report could not be written or read.
    func run() async throws(DemoFailure) -> SoakTotals {
        try StandardOutput.write(
            "soak for \(length), rounds of \(scenarios.count) scenarios. The same order again: --seed \(seed)\n"
        )
        var totals = SoakTotals(seed: seed)
        let begin = ContinuousClock.now
        let faults = ColdStart.majorFaults()
        let chaos = Chaos(ChaosKind.allCases.filter { $0 != .clock || stepsClock }, seed: seed)
        let witnesses = try CallWitnesses(seed: seed)
        let history = try await runScenarios(from: begin, beside: chaos, &totals)
        totals.chaos = chaos.stop()
        totals.calls = await witnesses.stop()
        totals.addLate(try await runner.finish())
        totals.leftChildren = try LeftChild.all()
        totals.health = history.last
        totals.growth = history.growth
        totals.majorFaults = ColdStart.majorFaults() - faults
        totals.seconds = (ContinuousClock.now - begin).seconds
        totals.wasInterrupted = interruption.hasCome
        return totals
    }

    private func runScenarios(
        from begin: ContinuousClock.Instant, beside chaos: Chaos, _ totals: inout SoakTotals
    ) async throws(DemoFailure) -> HealthHistory {
        var history = HealthHistory()
        var rounds = ScenarioRounds(scenarios, seed: seed)
        while ContinuousClock.now < begin + length.duration, !interruption.hasCome {
            let turn = rounds.next()
            if rounds.completed > totals.rounds {
                totals.rounds = rounds.completed
                try tell(of: totals, history)
            }
            chaos.leaveOut(turn.scenario.leftOut)
            if turn.startsCold, await ColdStart.prepare() { totals.coldStarts += 1 }
            totals.add(try await judge(turn.scenario, &totals))
            if totals.rounds > 0, ContinuousClock.now >= begin + length.duration * Self.warmUp {
                history.warmUpIsOver()
            }
            history.add(try ProcessHealth.now())
        }
        return history
    }

    /// What came of a scenario.
    ///
    /// In a virtual machine whose host takes its CPUs away a stall is not as long as it was meant to be: what goes wrong then is
    /// told and counted, and the scenario is run again.
    private func judge(_ scenario: Scenario, _ totals: inout SoakTotals) async throws(DemoFailure) -> Outcome {
        let place = "no. \(totals.scenarios + 1) of seed \(seed)"
        var attempt = 1
        while true {
            let steal = CPUSteal()
            let outcome: Outcome
            do throws(DemoFailure) {
                outcome = try await runner.run(scenario)
            } catch {
                throw DemoFailure(error.status, "scenario \(scenario.name), \(place): \(error.sentence)")
            }
            if outcome.verdict.isRight { return outcome }
            let reports = outcome.reports.map { "; \($0.cause ?? "no cause"): \($0.file)" }.joined()
            try StandardOutput.write("\(place): \(Progress.describe(outcome))\(reports)\n")
            guard attempt < Self.maximumAttempts, steal.isDisturbing else { return outcome }
            totals.repeated += 1
            attempt += 1
        }
    }

    private func tell(of totals: SoakTotals, _ history: HealthHistory) throws(DemoFailure) {
        let health = history.last.map { health in
            "memory \((Double(health.memory) / 1024).oneDecimal) MB of \((Double(health.resident) / 1024).oneDecimal) MB "
                + "resident, \(health.descriptors) descriptors, \(health.threads) threads, \(health.mappings) mappings"
        }
        try StandardOutput.write(
            "round \(totals.rounds): \(totals.scenarios) scenarios, \(totals.failed) failed; \(health ?? "")\n"
        )
    }
}
