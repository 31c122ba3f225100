/// The order in which a soak runs its scenarios: round after round, each time all of them, each time in another order.
///
/// Rounds and not a choice each time, so that every scenario has its turn before any has two of them more than another.
/// The order depends on nothing but the seed.
struct ScenarioRounds {
    /// What is to be done next.
    struct Turn {
        let scenario: Scenario
        /// Whether all code that can be read again from files is taken out of memory before.
        let startsCold: Bool
    }

    /// One scenario in so many starts cold.
    static let turnsPerColdStart = 4

    private let scenarios: [Scenario]
    private var random: SplitMix64
    private var round: ArraySlice<Scenario> = []
    /// How many rounds are over, once `next` has been called for the first of the following one.
    private(set) var completed = -1

    /// Rounds of `scenarios`, of which there must be one at least.
    init(_ scenarios: [Scenario], seed: UInt64) {
        precondition(!scenarios.isEmpty, "there is something to choose from")
        self.scenarios = scenarios
        random = SplitMix64(seed: seed)
    }

    /// The next scenario.
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
