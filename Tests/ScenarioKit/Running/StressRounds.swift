import Foundation

/// The rounds of `--rounds`: all scenarios in each round, two at a time, each in a process of its own.
///
/// The processes run this program, so ``RetryPolicy`` applies in each of them. The folder of a wrong result stays in the
/// output directory. That of a right one is removed.
struct StressRounds: Sendable {
    /// The part of a process's summary that is counted.
    struct Row: Codable, Equatable, Sendable {
        var scenario: String
        var result: ScenarioResult
        var retries = 0
        var run: Run?

        struct Run: Codable, Equatable, Sendable {
            var unavailable: String?
        }
    }

    let scenarios: [Scenario]
    let count: Int
    let output: String
    /// Options for each process, such as the threshold.
    let options: [String]
    let timeout: Duration
    var executable = ChildProcess.program

    /// Runs all rounds, with a line for each wrong result and each round.
    func run() async throws(ScenariosFailure) -> ScenarioTally {
        var tally = ScenarioTally()
        for round in 1...count {
            for row in try await rows(ofRound: round) {
                tally.add(row.result, of: row.scenario, lacking: row.run?.unavailable, retries: row.retries)
                guard row.result != .ok else { continue }
                try StandardOutput.write("round \(round): \(row.scenario): \(row.result.rawValue)\n")
            }
            try StandardOutput.write("\(round) of \(count) rounds: \(tally.line)\n")
        }
        return tally
    }

    private func rows(ofRound round: Int) async throws(ScenariosFailure) -> [Row] {
        let lanes = ScenarioLanes(scenarios)
        var alone = scenarios.filter { ScenarioLanes.alone.contains($0.name) }[...]
        do {
            async let computing = runAll(round) { lanes.next(.computing) }
            async let blocking = runAll(round) { lanes.next(.blocking) }
            let rows = try await computing + blocking
            return try await rows + runAll(round) { alone.popFirst() }
        } catch {
            throw ScenariosFailure(error, of: "round \(round)")
        }
    }

    private func runAll(_ round: Int, _ next: () -> Scenario?) async throws(ScenariosFailure) -> [Row] {
        var rows: [Row] = []
        while let scenario = next() { rows.append(try await row(of: scenario.name, round: round)) }
        return rows
    }

    func row(of scenario: String, round: Int) async throws(ScenariosFailure) -> Row {
        let folder = "\(output)/\(scenario)-\(round)"
        let summary = folder + "/summary.json"
        // A summary of an earlier run must not count.
        try? FileManager.default.removeItem(atPath: folder)
        let child = try ChildProcess(
            ["--quiet", "--scenario", scenario, "--output", folder, "--summary", summary] + options,
            executable: executable)
        let ending = await child.finish(within: timeout)
        let rows = FileManager.default.contents(atPath: summary)
            .flatMap { try? JSONDecoder().decode([Row].self, from: $0) }
        // A process writes its summary last. Without one it has crashed, failed or been killed.
        guard let row = rows?.first, ending.signal == 0 else {
            StandardError.write("\(scenario), round \(round): the process \(ending)\n")
            return Row(scenario: scenario, result: .noResult)
        }
        if !row.result.isFailure { try? FileManager.default.removeItem(atPath: folder) }
        return row
    }
}
