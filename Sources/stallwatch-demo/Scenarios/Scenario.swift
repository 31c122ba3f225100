import StallWatch

/// Something that is done to a loop, and what must be reported of it.
struct Scenario: Sendable {
    /// Does it, and returns when the loop has nothing left to do.
    ///
    /// The result is how long each injected stall took in truth.
    typealias Run = @Sendable (ScenarioContext) async throws -> [Duration]

    /// What `--scenario` takes.
    let name: String
    /// What happens, in half a sentence.
    let summary: String
    /// How long the injected stall takes, as a multiple of the threshold.
    let stallFactor: Double
    /// What the report must say; `nil` when there must be none.
    let expected: ExpectedReport?
    /// Why the monitor must have held something back; `nil` when that is all the same.
    var suppressed: SuppressionReason?
    /// The kind of cause that reports may have which need not be there.
    var toleratedCause: String?
    let run: Run

    /// A scenario that must be reported.
    ///
    /// `run` returns how long the one stall took.
    static func stalling(
        _ name: String, _ summary: String, times stallFactor: Double, _ expected: ExpectedReport,
        run: @escaping @Sendable (ScenarioContext) async throws -> Duration
    ) -> Scenario {
        Scenario(
            name: name, summary: summary, stallFactor: stallFactor, expected: expected, run: { [try await run($0)] }
        )
    }

    /// A scenario that must be reported several times.
    static func stallingOften(
        _ name: String, _ summary: String, times stallFactor: Double, _ expected: ExpectedReport, run: @escaping Run
    ) -> Scenario {
        Scenario(name: name, summary: summary, stallFactor: stallFactor, expected: expected, run: run)
    }

    /// A scenario that must give no report.
    ///
    /// `run` returns how long the longest turn that might become a stall took, or `nil` when there is none. Reports of
    /// `toleratedCause` are allowed: what other threads really delayed.
    static func quiet(
        _ name: String, _ summary: String, times stallFactor: Double = 0, suppressed: SuppressionReason? = nil,
        tolerating toleratedCause: String? = nil,
        run: @escaping @Sendable (ScenarioContext) async throws -> Duration?
    ) -> Scenario {
        Scenario(
            name: name, summary: summary, stallFactor: stallFactor, expected: nil, suppressed: suppressed,
            toleratedCause: toleratedCause, run: { context in try await run(context).map { [$0] } ?? [] }
        )
    }
}

/// A scenario cannot run on this machine.
struct NotAvailable: Error {
    /// What is missing, in half a sentence.
    let reason: String
}

extension Scenario {
    /// Every scenario, in the order in which they run.
    static let all =
        stallingScenarios + causeScenarios + lockScenarios + calloutScenarios + waitingScenarios + nestingScenarios
        + modeScenarios + threadScenarios + monitorScenarios + queueScenarios + eventLoopScenarios + probeScenarios
        + programScenarios + quietScenarios + loadScenarios + pausedScenarios

    /// A line a scenario.
    static func list(_ scenarios: [Scenario]) -> String {
        let width = scenarios.map(\.name.count).max() ?? 0
        return scenarios.map { scenario in
            var expectation = scenario.expected == nil ? "no report" : "reported"
            if let function = scenario.expected?.function { expectation += " in " + function }
            return scenario.name.padded(to: width) + "  \(scenario.summary) (\(expectation))\n"
        }.joined()
    }
}
