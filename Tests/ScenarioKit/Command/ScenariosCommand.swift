import ArgumentParser
import Foundation
import StallWatch

struct ScenariosCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-scenarios",
        abstract: "Injects stalls into real event loops and checks the report of each.",
        discussion: """
            Exit status: 0 if no result is wrong and few are not-available or inconclusive, 1 otherwise, 64 for a usage error, 73 if a \
            file cannot be made, 74 if one cannot be written or read, 71 if the system refuses something else.

            stallwatch-scenarios generate --help: made-up reports of a fleet.
            stallwatch-scenarios order --help: what the run loop does, in its order.
            """
    )

    @Flag(help: "List the scenarios and exit.")
    var list = false

    @Option(
        name: .customLong("scenario"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Run only this scenario. May be given several times. Default: all.", valueName: "name")
    )
    var names: [String] = []

    // Unconditional, so that -5ms is a wrong value and not an unknown option.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The duration from which on a turn is a stall. Default: \(GivenDuration.standardThreshold).",
            valueName: "duration"
        ),
        transform: GivenDuration.threshold
    )
    var threshold = GivenDuration.standardThreshold

    @Option(help: ArgumentHelp("The directory for the reports, made if it is missing.", valueName: "dir"))
    var output = "stalls"

    @Option(help: ArgumentHelp("Write the results to this file, as JSON.", valueName: "file"))
    var summary: String?

    @Option(
        help: ArgumentHelp("The duration of the scenario under-load in seconds, up to a day.", valueName: "seconds")
    )
    var loadSeconds = 5

    @Option(
        help: ArgumentHelp(
            "Run the scenarios in random order for this time, such as 30m, beside forks, execs, exceptions and more, "
                + "and detect leaks and interrupted calls.",
            valueName: "time"
        ),
        transform: GivenDuration.length
    )
    var soak: GivenDuration?

    @Option(help: ArgumentHelp("The seed of the order of --soak. Default: a random one.", valueName: "number"))
    var seed: UInt64?

    @Flag(
        help: ArgumentHelp(
            "Let --soak set the machine's clock back by two seconds and, 5 ms later, forward again, some six times a minute. "
                + "Needs CAP_SYS_TIME."
        )
    )
    var stepClock = false

    @Option(
        help: ArgumentHelp(
            "Run no scenario but five kinds of healthy loops at once for this time, such as 10m. A report is a failure.",
            valueName: "time"
        ),
        transform: GivenDuration.length
    )
    var healthy: GivenDuration?

    @Option(
        help: ArgumentHelp(
            "Run all scenarios this many times, each in its own process and two at a time, and count the results.",
            valueName: "number"
        )
    )
    var rounds: Int?

    @Option(
        help: ArgumentHelp(
            "Run nothing: judge the reports of an earlier run again, as they are in --output now. Takes the file that "
                + "--summary wrote.",
            valueName: "file"
        )
    )
    var judge: String?

    @Flag(help: "Show no progress, only the table.")
    var quiet = false

    @Option(help: .hidden)
    var host: HostShape?

    @Option(help: .hidden)
    var hostStall = 0

    @Option(help: .hidden)
    var soakRounds = 0

    func validate() throws {
        _ = try selectedScenarios()
        if !(1...86_400).contains(loadSeconds) {
            throw ValidationError("The value '\(loadSeconds)' of --load-seconds is out of range: choose 1 to 86400.")
        }
        if soak == nil, seed != nil || stepClock {
            throw ValidationError("--seed and --step-clock need --soak.")
        }
        if let rounds {
            if soak != nil { throw ValidationError("--rounds and --soak exclude each other: choose one.") }
            if !(1...10_000).contains(rounds) {
                throw ValidationError("The value '\(rounds)' of --rounds is out of range: choose 1 to 10000.")
            }
        }
        if judge != nil, soak != nil || rounds != nil || !names.isEmpty || summary != nil {
            throw ValidationError("--judge runs nothing: leave out --scenario, --soak, --rounds and --summary.")
        }
        if healthy != nil, soak != nil || rounds != nil || judge != nil || !names.isEmpty || summary != nil {
            throw ValidationError(
                "--healthy runs no scenario: leave out --scenario, --soak, --rounds, --judge and --summary.")
        }
        if judge?.isEmpty == true { throw ValidationError("The value '' of --judge is empty: name a file.") }
        if output.isEmpty { throw ValidationError("The value '' of --output is empty: name a directory.") }
        if summary?.isEmpty == true { throw ValidationError("The value '' of --summary is empty: name a file.") }
    }

    func run() throws {
        do {
            if list {
                try StandardOutput.write(Scenario.list(Scenario.all))
            } else if try
                !(judge.map(judgeAgain) ?? healthy.map(runHealthy) ?? soak.map(runSoak)
                ?? rounds.map(runRounds) ?? runScenarios())
            {
                throw ExitCode.failure
            }
        } catch let failure as ScenariosFailure {
            StandardError.write("Error: \(failure.sentence)\n")
            throw ExitCode(failure.status.rawValue)
        }
    }

    func selectedScenarios() throws(ValidationError) -> [Scenario] {
        if names.isEmpty { return Scenario.all }
        return try names.map { name throws(ValidationError) in
            if let scenario = Scenario.all.first(where: { $0.name == name }) { return scenario }
            let known = Scenario.all.map(\.name).joined(separator: ", ")
            throw ValidationError("There is no scenario '\(name)': name one of \(known).")
        }
    }

    private func runScenarios() throws -> Bool {
        let scenarios = try selectedScenarios()
        let (monitor, mainLoop) = try startMonitor()
        defer { monitor.stop() }
        // Checked now, not after minutes of scenarios, but after the monitor has made the output directory.
        let file = try summary.map(SummaryFile.init(path:))
        let progress = Progress(isSilent: quiet, total: scenarios.count)
        let outcomes = try MainLoop.run { () async throws(ScenariosFailure) in
            try await runner(monitor, mainLoop).judgeAll(scenarios, progress)
        }
        let table = SummaryTable(outcomes)
        try StandardOutput.write(table.text)
        try file?.write(outcomes.map(Summary.init))
        return try hasPassed(table.tally)
    }

    /// Judges the reports of an earlier run, and shows the table; returns whether it passed.
    private func judgeAgain(_ summary: String) throws -> Bool {
        let table = SummaryTable(try Outcome.read(summary, of: Scenario.all, reportsIn: output))
        try StandardOutput.write(table.text)
        return try hasPassed(table.tally)
    }

    private func runRounds(_ count: Int) throws -> Bool {
        do {
            try FileManager.default.createDirectory(atPath: output, withIntermediateDirectories: true)
        } catch {
            throw ScenariosFailure(.cannotCreate, "\(output) cannot be made: \(error.localizedDescription)")
        }
        let file = try summary.map(SummaryFile.init(path:))
        // A scenario takes up to 20 thresholds, and a while to start and to end.
        let attempt = threshold.duration * 20 + .seconds(loadSeconds)
        let stress = StressRounds(
            // Each once: a process removes what is in its scenario's folder.
            scenarios: Scenario.all.filter { names.isEmpty || names.contains($0.name) }, count: count, output: output,
            options: ["--threshold", threshold.description, "--load-seconds", "\(loadSeconds)"],
            timeout: .seconds(120) + attempt * RetryPolicy.maximumAttempts
        )
        let tally = try MainLoop.run { () async throws(ScenariosFailure) in try await stress.run() }
        try file?.write(tally)
        return try hasPassed(tally)
    }

    private func runHealthy(_ length: GivenDuration) throws -> Bool {
        let run = HealthyRun(length: length.duration, threshold: threshold.duration, directory: output)
        return try MainLoop.run { () async throws(ScenariosFailure) in
            do {
                return try await run.run()
            } catch {
                throw ScenariosFailure(error, of: "the loops")
            }
        }
    }

    private func hasPassed(_ tally: ScenarioTally) throws -> Bool {
        for problem in tally.problems { try StandardOutput.write("FAILED: \(problem)\n") }
        return tally.problems.isEmpty
    }

    private func runSoak(_ length: GivenDuration) throws -> Bool {
        let scenarios = try selectedScenarios()
        let interruption = Interruption()
        let (monitor, mainLoop) = try startMonitor()
        defer { monitor.stop() }
        let file = try summary.map(SummaryFile.init(path:))
        let seed = seed ?? UInt64.random(in: 0..<1_000_000)
        let totals = try MainLoop.run { () async throws(ScenariosFailure) in
            try await Soak(
                length: length, leastRounds: soakRounds, seed: seed, scenarios: scenarios, stepsClock: stepClock,
                runner: runner(monitor, mainLoop),
                interruption: interruption,
                turnOnce: { for callout in MainLoop.callouts { _ = await callout {} } }
            ).run()
        }
        try StandardOutput.write(totals.line)
        try file?.write(SoakSummary(totals))
        return totals.problems.isEmpty
    }

    private func runner(_ monitor: StallMonitor, _ mainLoop: LoopWatch) async -> ScenarioRunner {
        await ScenarioRunner(
            monitor: monitor, mainLoop: mainLoop, directory: output, loadTime: .seconds(loadSeconds))
    }

    private func startMonitor() throws(ScenariosFailure) -> (StallMonitor, LoopWatch) {
        do throws(StallWatchError) {
            var configuration = StallMonitor.Configuration(threshold: threshold.duration, outputs: [.all(in: output)])
            // Several scenarios stall in the same function, and each needs a report of its own.
            configuration.repeats.reportsEveryRepeat = true
            configuration.repeats.maximumReportsPerMinute = 10_000
            let monitor = try StallMonitor(configuration)
            let mainLoop = try monitor.watch(.runLoop(.main, label: "main"))
            try monitor.start()
            return (monitor, mainLoop)
        } catch {
            throw ScenariosFailure(error)
        }
    }
}

extension Scenario {
    /// All scenarios, in the order in which they run.
    static let all: [Scenario] = {
        let groups: [[Scenario]] = [
            stallingScenarios, causeScenarios, adviceScenarios, lockScenarios, peerScenarios, calloutScenarios,
            waitingScenarios, nestingScenarios, tailCallScenarios, modeScenarios, modeStarvationScenarios,
            stepScenarios, victimScenarios, notRunScenarios, threadScenarios, residentScenarios,
            monitorScenarios, busyScenarios, queueScenarios, poolScenarios, eventLoopScenarios, probeScenarios,
            operationScenarios, programScenarios, quietScenarios, loadScenarios, pausedScenarios,
        ]
        return groups.flatMap { $0 }.map(\.judgedByAdvice)
    }()
}
