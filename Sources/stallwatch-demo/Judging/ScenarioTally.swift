/// The counts of many results, and the overall judgement.
struct ScenarioTally: Equatable, Sendable {
    /// The number of different scenarios that may be unavailable on a machine: a library, a cgroup of version 1, and a global
    /// that a process initializes only once.
    static let unavailableLimit = 3
    /// The share of runs that may be inconclusive.
    ///
    /// One run always may.
    static let inconclusiveShare = 0.02

    private(set) var counts: [ScenarioResult: Int] = [:]
    /// The number of runs that did not stand (``RetryPolicy``).
    private(set) var retries = 0
    private var judged: Set<String> = []
    private var unavailable: Set<String> = []

    /// Counts one more result.
    mutating func add(_ result: ScenarioResult, of scenario: String, retries: Int = 0) {
        counts[result, default: 0] += 1
        self.retries += retries
        switch result {
        case .notAvailable: unavailable.insert(scenario)
        case .inconclusive: break
        default: judged.insert(scenario)
        }
    }

    /// Counts one more outcome.
    mutating func add(_ outcome: Outcome) { add(outcome.result, of: outcome.scenario, retries: outcome.retries) }

    subscript(result: ScenarioResult) -> Int { counts[result] ?? 0 }

    var total: Int { counts.values.reduce(0, +) }

    var failed: Int { counts.reduce(0) { $0 + ($1.key.isFailure ? $1.value : 0) } }

    /// Everything that makes the whole run fail, except the failed scenarios themselves.
    var unjudgedProblems: [String] {
        var problems: [String] = []
        if judged.isEmpty { problems.append("no scenario was judged") }
        // A scenario that was judged once is available, whatever a repetition in the same process found.
        let never = unavailable.subtracting(judged).sorted()
        if never.count > Self.unavailableLimit {
            problems.append(
                "\(never.count) scenarios are not available, where \(Self.unavailableLimit) may be: \(never.joined(separator: ", "))"
            )
        }
        let allowed = max(1, Int(Double(total) * Self.inconclusiveShare))
        if self[.inconclusive] > allowed {
            problems.append("\(self[.inconclusive]) runs were inconclusive, where \(allowed) may be")
        }
        return problems
    }

    /// Everything that makes the whole run fail.
    var problems: [String] { (failed > 0 ? ["\(failed) failed"] : []) + unjudgedProblems }

    /// The counts in a line, without a line feed.
    var line: String {
        "\(self[.ok]) of \(total) ok, \(failed) failed, \(self[.notAvailable]) not available, "
            + "\(self[.inconclusive]) inconclusive; \(retries) run again because the CPUs were taken away"
    }
}

extension ScenarioTally: Encodable {
    private enum Key: String, CodingKey {
        case problems, results, retries
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(problems, forKey: .problems)
        try container.encode(counts.byName, forKey: .results)
        try container.encode(retries, forKey: .retries)
    }
}

extension [ScenarioResult: Int] {
    /// The counts under the names that a summary file uses.
    var byName: [String: Int] { reduce(into: [String: Int]()) { $0[$1.key.rawValue] = $1.value } }
}
