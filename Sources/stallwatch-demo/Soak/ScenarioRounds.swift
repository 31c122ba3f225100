/// The order of a soak's scenarios: rounds with all scenarios, each in another order.
///
/// With rounds, no scenario runs two times more than another. The order depends only on the seed.
struct ScenarioRounds {
    /// The next scenario.
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
    /// The number of finished rounds.
    ///
    /// A round is finished when `next` has returned the first scenario of the following one.
    private(set) var completed = -1

    /// Rounds of `scenarios`, which must not be empty.
    init(_ scenarios: [Scenario], seed: UInt64) {
        precondition(!scenarios.isEmpty, "there is something to choose from")
        self.scenarios = scenarios
        random = SplitMix64(seed: seed)
    }

    /// Returns the next scenario.
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
