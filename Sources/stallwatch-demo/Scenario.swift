/// Something that is done to a loop, and what must be reported of it.
struct Scenario: Sendable {
    /// What `--scenario` takes.
    let name: String
    /// What happens, in half a sentence.
    let summary: String
    /// How long the injected stall takes, as a multiple of the threshold.
    let stallFactor: Double
    /// What the report must say; `nil` when there must be none.
    let expected: ExpectedReport?
    /// Does it, with a stall of the given length, and returns when the loop has nothing left to do.
    ///
    /// The result is how long the longest injected stall took in truth, or `nil` when none is injected.
    let run: @Sendable (_ stall: Duration) async -> Duration?

    /// What a scenario's report must say beside its duration.
    struct ExpectedReport: Equatable, Sendable {
        /// The label of the loop that stalls.
        var loop = "main"
        /// The function that is to blame, as it is demangled.
        var function: String
    }

    /// A scenario that must give exactly one report.
    static func stalling(
        _ name: String, _ summary: String, times stallFactor: Double, in function: String,
        run: @escaping @Sendable (_ stall: Duration) async -> Duration
    ) -> Scenario {
        Scenario(
            name: name, summary: summary, stallFactor: stallFactor, expected: ExpectedReport(function: function),
            run: run
        )
    }

    /// A scenario that must give no report.
    static func quiet(
        _ name: String, _ summary: String, times stallFactor: Double = 0,
        run: @escaping @Sendable (_ stall: Duration) async -> Duration?
    ) -> Scenario {
        Scenario(name: name, summary: summary, stallFactor: stallFactor, expected: nil, run: run)
    }
}

extension Scenario {
    /// Every scenario, in the order in which they run.
    static let all = stallingScenarios + quietScenarios

    /// A line a scenario.
    static func list(_ scenarios: [Scenario]) -> String {
        let width = scenarios.map(\.name.count).max() ?? 0
        return scenarios.map { scenario in
            let expectation = scenario.expected.map { "reported in \($0.function)" } ?? "no report"
            return scenario.name.padded(to: width) + "  \(scenario.summary) (\(expectation))\n"
        }.joined()
    }
}
