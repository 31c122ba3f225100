import ArgumentParser
import StallWatch

/// The demo: injects one stall after another into real event loops and checks what is reported of each.
struct DemoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stallwatch-demo",
        abstract: "Injects stalls into real event loops and checks the report of each.",
        discussion: """
            Exit status: 0 when every verdict is ok (or not-available), 1 when one is not, 64 for a usage error, 73 when a file cannot be \
            made, 74 when one cannot be written or read.
            """
    )

    @Flag(help: "List the scenarios and exit.")
    var list = false

    @Option(
        name: .customLong("scenario"), parsing: .unconditionalSingleValue,
        help: ArgumentHelp("Run this scenario only; may be given several times. Default: all.", valueName: "name")
    )
    var names: [String] = []

    // Unconditional, so that -5ms is a value with something wrong and not an unknown option.
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How long a turn may take before it is a stall. Default: \(Threshold.standard).", valueName: "duration"
        ),
        transform: Threshold.init(parsing:)
    )
    var threshold = Threshold.standard

    @Option(help: ArgumentHelp("The directory for the reports; made if it is missing.", valueName: "dir"))
    var output = "stalls"

    @Option(help: ArgumentHelp("Write the verdicts to this file, as JSON.", valueName: "file"))
    var summary: String?

    @Option(
        help: ArgumentHelp("For how many seconds the scenario under-load lasts, up to a day.", valueName: "seconds")
    )
    var loadSeconds = 5

    @Option(
        help: ArgumentHelp(
            "Run the scenarios in rounds of random order for so long, such as 30m, beside forks, execs, exceptions and more, "
                + "and look for leaks and interrupted calls.",
            valueName: "time"
        ),
        transform: SoakLength.init(parsing:)
    )
    var soak: SoakLength?

    @Option(help: ArgumentHelp("The order of --soak. Default: another one each time.", valueName: "number"))
    var seed: UInt64?

    @Flag(
        help: ArgumentHelp(
            "Let --soak set the clock of the whole machine back by two seconds and, 5 ms later, forth again, some six times "
                + "a minute. Needs CAP_SYS_TIME."
        )
    )
    var stepClock = false

    @Flag(help: "Show no progress, only the table.")
    var quiet = false

    @Option(help: .hidden)
    var host: HostShape?

    @Option(help: .hidden)
    var hostStall = 0

    func validate() throws {
        _ = try selectedScenarios()
        if !(1...86_400).contains(loadSeconds) {
            throw ValidationError("The value '\(loadSeconds)' of --load-seconds is out of range: choose 1 to 86400.")
        }
        if soak == nil, seed != nil || stepClock {
            throw ValidationError("--seed and --step-clock are about --soak: give that, too.")
        }
        if output.isEmpty { throw ValidationError("The value '' of --output is empty: name a directory.") }
        if summary?.isEmpty == true { throw ValidationError("The value '' of --summary is empty: name a file.") }
    }

    func run() throws {
        do {
            if list {
                try StandardOutput.write(Scenario.list(Scenario.all))
            } else if try !(soak.map(runSoak) ?? runScenarios()) {
                throw ExitCode.failure
            }
        } catch let failure as DemoFailure {
            StandardError.write("Error: \(failure.sentence)\n")
            throw ExitCode(failure.status.rawValue)
        }
    }

    /// The scenarios asked for, in the order they were asked for.
    func selectedScenarios() throws(ValidationError) -> [Scenario] {
        if names.isEmpty { return Scenario.all }
        var selected: [Scenario] = []
        for name in names {
            guard let scenario = Scenario.all.first(where: { $0.name == name }) else {
                let known = Scenario.all.map(\.name).joined(separator: ", ")
                throw ValidationError("There is no scenario '\(name)': name one of \(known).")
            }
            selected.append(scenario)
        }
        return selected
    }

    /// Runs the scenarios and shows what came of them.
    ///
    /// Returns whether every verdict is ok.
    private func runScenarios() throws -> Bool {
        let scenarios = try selectedScenarios()
        let monitor = try startMonitor()
        defer { monitor.stop() }
        // Now and not after minutes of scenarios; after the monitor has made the output directory, which it may be in.
        let file = try summary.map { path throws(DemoFailure) in try SummaryFile(path: path) }
        let progress = Progress(style: quiet ? .silent : .forStandardOutput, total: scenarios.count)
        let outcomes = try MainLoop.run { () async throws(DemoFailure) in
            try await ScenarioSequence(scenarios: scenarios, runner: runner(monitor), progress: progress).run()
        }
        try StandardOutput.write(SummaryTable(outcomes).text)
        try file?.write(outcomes)
        return outcomes.allSatisfy(\.verdict.isRight)
    }

    /// Runs the scenarios for a long time and shows what came of it.
    ///
    /// Returns whether everything is as it must be.
    private func runSoak(_ length: SoakLength) throws -> Bool {
        let scenarios = try selectedScenarios()
        let interruption = Interruption()
        let monitor = try startMonitor()
        defer { monitor.stop() }
        let file = try summary.map { path throws(DemoFailure) in try SummaryFile(path: path) }
        let seed = seed ?? UInt64.random(in: 0..<1_000_000)
        let totals = try MainLoop.run { () async throws(DemoFailure) in
            try await Soak(
                length: length, seed: seed, scenarios: scenarios, stepsClock: stepClock, runner: runner(monitor),
                interruption: interruption
            ).run()
        }
        try StandardOutput.write(totals.line)
        try file?.write(totals)
        return totals.problems.isEmpty
    }

    private func runner(_ monitor: StallMonitor) async -> ScenarioRunner {
        await ScenarioRunner(
            monitor: monitor, directory: output, loadTime: .seconds(loadSeconds), grantsWaits: soak != nil)
    }

    private func startMonitor() throws(DemoFailure) -> StallMonitor {
        do throws(StallWatchError) {
            var configuration = StallMonitor.Configuration(
                threshold: threshold.duration, reports: .directory(output)
            )
            // Scenarios stall in the same functions as others before them, and each wants its report.
            configuration.reportsEveryRepeat = true
            configuration.maximumReportsPerMinute = 10_000
            let monitor = try StallMonitor(configuration)
            try monitor.watch(.mainRunLoop)
            try monitor.start()
            return monitor
        } catch {
            throw DemoFailure(error)
        }
    }
}
