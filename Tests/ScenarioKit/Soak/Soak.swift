import Glibc
import LinuxSupport
import StallWatch

/// Scenarios for a long time, in an order that a seed gives, beside threads that fork, throw, map memory and more; it
/// judges each scenario, and that the process does not grow, leaves no child behind, and that no call of its threads
/// was interrupted or returned early.
struct Soak: Sendable {
    let length: GivenDuration
    /// Unless 0, it also goes on until so many rounds are whole and the growth can be judged, however long that takes.
    let leastRounds: Int
    let seed: UInt64
    let scenarios: [Scenario]
    let stepsClock: Bool
    let runner: ScenarioRunner
    let interruption: Interruption
    /// Makes the main loop turn once for each kind of callout.
    let turnOnce: @Sendable () async -> Void

    /// The part of the time that only warms up; it has one whole round at least.
    static let warmUp = 1.0 / 6

    /// Runs the soak, with a line for each failure and each round, and stops the monitor.
    func run() async throws(ScenariosFailure) -> SoakTotals {
        try StandardOutput.write(
            "soak for \(length), rounds of \(scenarios.count) scenarios. The same order again: --seed \(seed)\n"
        )
        var totals = SoakTotals(seed: seed)
        let begin = ContinuousClock.now
        let faults = ColdStart.majorFaults()
        let chaos = Chaos(ChaosKind.allCases.filter { $0 != .clock || stepsClock }, seed: seed)
        let witnesses = try InterruptionProbes(seed: seed)
        let history = try await runScenarios(from: begin, beside: chaos, witnesses, &totals)
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
        from begin: ContinuousClock.Instant, beside chaos: Chaos, _ witnesses: InterruptionProbes,
        _ totals: inout SoakTotals
    ) async throws(ScenariosFailure) -> HealthHistory {
        var history = HealthHistory()
        var rounds = ScenarioRounds(scenarios, seed: seed)
        while !isOver(begin, totals, history) {
            let turn = rounds.next()
            if rounds.completed > totals.rounds {
                totals.rounds = rounds.completed
                try tell(of: totals, history)
            }
            chaos.leaveOut(turn.scenario.leftOut)
            if turn.startsCold {
                let started = Timestamp(wallClockNanoseconds: wallClockNow())
                if await ColdStart.prepare(turnOnce) { totals.coldStarts += 1 }
                // On a slow disk the turns over evicted pages are stalls, which no scenario expects.
                await runner.forgetStalls(since: started)
            }
            totals.add(try await judge(turn.scenario, totals))
            if totals.rounds > 0, ContinuousClock.now >= begin + length.duration * Self.warmUp {
                history.warmUpIsOver()
            }
            history.add(try witnesses.betweenCalls(ProcessHealth.now))
        }
        return history
    }

    private func isOver(
        _ begin: ContinuousClock.Instant, _ totals: SoakTotals, _ history: HealthHistory
    ) -> Bool {
        if interruption.hasCome { return true }
        guard ContinuousClock.now >= begin + length.duration else { return false }
        return leastRounds == 0 || totals.rounds >= leastRounds && history.growth != nil
    }

    /// Runs a scenario, with a line for each outcome that is not right.
    private func judge(_ scenario: Scenario, _ totals: SoakTotals) async throws(ScenariosFailure) -> Outcome {
        let place = "no. \(totals.tally.total + 1) of seed \(seed)"
        func tell(of outcome: Outcome) throws(ScenariosFailure) {
            let reports = outcome.reports.map { "; \($0.cause ?? "no cause"): \($0.file)" }.joined()
            try StandardOutput.write("\(place): \(Progress.describe(outcome))\(reports)\n")
        }
        do throws(ScenariosFailure) {
            let outcome = try await runner.judge(scenario) { outcome throws(ScenariosFailure) in try tell(of: outcome) }
            if outcome.result.isFailure || outcome.result == .inconclusive { try tell(of: outcome) }
            return outcome
        } catch {
            throw ScenariosFailure(error.status, "scenario \(scenario.name), \(place): \(error.sentence)")
        }
    }

    private func tell(of totals: SoakTotals, _ history: HealthHistory) throws(ScenariosFailure) {
        let health = history.last.map { health in
            "memory \((Double(health.memory) / 1024).oneDecimal) MB of \((Double(health.resident) / 1024).oneDecimal) MB "
                + "resident, \(health.descriptors) descriptors, \(health.threads) threads, \(health.mappings) mappings"
        }
        try StandardOutput.write("round \(totals.rounds): \(totals.tally.line); \(health ?? "")\n")
    }
}

/// The order of a soak's scenarios: rounds with all scenarios, each in another order.
///
/// With rounds, no scenario runs two times more than another. The order depends only on the seed.
struct ScenarioRounds {
    struct Turn {
        let scenario: Scenario
        /// Whether the program's file pages are evicted from memory first (``ColdStart``).
        let startsCold: Bool
    }

    /// The average number of scenarios per cold start.
    static let turnsPerColdStart = 4

    private let scenarios: [Scenario]
    private var random: SplitMix64
    private var round: ArraySlice<Scenario> = []
    /// The number of finished rounds; a round is finished when `next` has returned the first scenario of the following
    /// one.
    private(set) var completed = -1

    /// Rounds of `scenarios`, which must not be empty.
    init(_ scenarios: [Scenario], seed: UInt64) {
        precondition(!scenarios.isEmpty, "there is something to choose from")
        self.scenarios = scenarios
        random = SplitMix64(seed: seed)
    }

    mutating func next() -> Turn {
        if round.isEmpty {
            round = scenarios.shuffled(using: &random)[...]
            completed += 1
        }
        return Turn(
            scenario: round.removeFirst(), startsCold: Int.random(in: 0..<Self.turnsPerColdStart, using: &random) == 0
        )
    }
}
