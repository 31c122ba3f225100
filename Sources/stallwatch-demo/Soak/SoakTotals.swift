/// What came of a soak.
struct SoakTotals: Sendable {
    /// A scenario that was not as it had to be.
    struct Failure: Equatable, Encodable, Sendable {
        var scenario: String
        /// Its place in the order that the seed gives, from 1 on.
        var number: Int
        var verdict: String
        var injectedMilliseconds: Double?
        /// The reports' files.
        var reports: [String]
    }

    /// More failures are only counted.
    static let listedFailures = 100

    let seed: UInt64
    var seconds = 0.0
    var scenarios = 0
    /// Rounds that were run to their end.
    var rounds = 0
    var ok = 0
    var notAvailable = 0
    /// How often a scenario was run again because the machine's host took its CPUs away.
    var repeated = 0
    /// How many scenarios gave a report that they should not have given.
    var falseAlarms = 0
    /// How many stalls were injected that had to be reported, and of how many there was a report.
    var stalls = 0
    var reported = 0
    var failed = 0
    var failures: [Failure] = []
    var health: ProcessHealth?
    var growth: HealthGrowth?
    /// Children that were there when all was over.
    var leftChildren: [LeftChild] = []
    var calls = CallWitnesses.Count()
    var chaos: [ChaosKind: ChaosCount] = [:]
    var coldStarts = 0
    var majorFaults = 0
    /// A signal ended it before its time.
    var wasInterrupted = false

    init(seed: UInt64) {
        self.seed = seed
    }

    /// Counts what came of one more scenario.
    mutating func add(_ outcome: Outcome) {
        scenarios += 1
        let verdict = outcome.verdict
        if let expected = outcome.expected, verdict != .notAvailable {
            stalls += expected.count
            reported += min(outcome.ownReports.count, expected.count)
        }
        switch verdict {
        case .ok: ok += 1
        case .notAvailable: notAvailable += 1
        default:
            failed += 1
            if verdict == .falseAlarm { falseAlarms += 1 }
            guard failures.count < Self.listedFailures else { return }
            failures.append(
                Failure(
                    scenario: outcome.scenario, number: scenarios, verdict: verdict.rawValue,
                    injectedMilliseconds: outcome.injectedMilliseconds, reports: outcome.reports.map(\.file)
                )
            )
        }
    }

    /// Reports that came when all scenarios were over: nobody expected them.
    mutating func addLate(_ reports: [ReportedStall]) {
        guard !reports.isEmpty else { return }
        failed += 1
        falseAlarms += 1
        failures.append(
            Failure(
                scenario: "(after the last)", number: scenarios, verdict: ScenarioResult.falseAlarm.rawValue,
                injectedMilliseconds: nil, reports: reports.map(\.file)
            )
        )
    }
}

extension SoakTotals {
    /// Everything that is not as it must be, a sentence each; empty when the soak has passed.
    var problems: [String] {
        var problems: [String] = []
        func add(_ count: Int, _ text: String) {
            if count > 0 { problems.append("\(count) \(text)") }
        }
        if failed > 0 {
            // Whose names: the seed gives the same order again.
            let names = failures.prefix(5).map { "\($0.scenario) (no. \($0.number): \($0.verdict))" }
            problems.append("\(failed) scenarios failed, \(names.joined(separator: ", "))")
        }
        if scenarios == notAvailable { problems.append("no scenario was judged") }
        problems += growth?.problems ?? []
        if !leftChildren.isEmpty {
            let names = leftChildren.map { "\($0.name) (\($0.state))" }
            problems.append("children left behind: \(names.joined(separator: ", "))")
        }
        add(calls.interrupted, "calls returned EINTR")
        add(calls.early, "calls returned early")
        add(calls.failed, "calls returned another error")
        add(calls.calls - calls.reported - calls.suppressed, "calls over the threshold were not reported")
        if calls.captured < calls.reported / 2 {
            problems.append(
                "only \(calls.captured) of \(calls.reported) calls were captured: that nothing interrupts them is not shown"
            )
        }
        for (kind, count) in chaos.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            add(count.failed, "actions of the kind \(kind.rawValue) went wrong")
        }
        if wasInterrupted { problems.append("it was ended before its time") }
        return problems
    }

    /// All of it in one line.
    var line: String {
        let verdict = problems.isEmpty ? "ok" : "FAILED: " + problems.joined(separator: "; ")
        return [
            "soak \(verdict). Seed \(seed), \(Int(seconds.rounded())) s",
            "\(scenarios) scenarios in \(rounds) whole rounds: \(ok) ok, \(failed) failed, \(notAvailable) not available, "
                + "\(repeated) run again because the host took the CPUs",
            "\(reported) of \(stalls) stalls reported, \(falseAlarms) false alarms",
            "\(calls.calls) interruptible calls: \(calls.reported) reported, \(calls.captured) captured, \(calls.interrupted) EINTR, "
                + "\(calls.early) early",
            grownText, "\(leftChildren.count) children left", "beside it " + chaosText,
        ].joined(separator: " | ") + "\n"
    }

    private var grownText: String {
        guard let growth else { return "growth not judged: too short for a round to warm up and 6 scenarios more" }
        let megabytes = (Double(growth.memory) / 1024).oneDecimal
        let now = health.map { " to \((Double($0.memory) / 1024).oneDecimal) MB" } ?? ""
        return "memory grew by \(megabytes) MB\(now), descriptors by \(growth.descriptors), "
            + "threads by \(growth.threads), mappings by \(growth.mappings)"
    }

    private var chaosText: String {
        let kinds = ChaosKind.allCases.map { kind in
            guard let count = chaos[kind] else { return "\(kind.rawValue) off" }
            return kind.rawValue + (count.isRefused ? " not permitted" : " \(count.done)")
        }
        return (kinds + ["cold starts \(coldStarts) (\(majorFaults) page faults to disk)"]).joined(separator: ", ")
    }
}

extension SoakTotals: Encodable {
    private enum Key: String, CodingKey {
        case seed, seconds, problems, scenarios, rounds, ok, failed, notAvailable, repeated, falseAlarms
        case stalls, reported
        case failures, growth, margin, memoryKilobytes, leftChildren, calls, chaos, coldStarts, majorFaults
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(seed, forKey: .seed)
        try container.encode(seconds, forKey: .seconds)
        try container.encode(problems, forKey: .problems)
        try container.encode(scenarios, forKey: .scenarios)
        try container.encode(rounds, forKey: .rounds)
        try container.encode(ok, forKey: .ok)
        try container.encode(failed, forKey: .failed)
        try container.encode(notAvailable, forKey: .notAvailable)
        try container.encode(repeated, forKey: .repeated)
        try container.encode(falseAlarms, forKey: .falseAlarms)
        try container.encode(stalls, forKey: .stalls)
        try container.encode(reported, forKey: .reported)
        try container.encode(failures, forKey: .failures)
        // Null where too little ran to say.
        try container.encode(growth, forKey: .growth)
        try container.encode(HealthGrowth.margin, forKey: .margin)
        try container.encode(health?.memory, forKey: .memoryKilobytes)
        try container.encode(leftChildren, forKey: .leftChildren)
        try container.encode(calls, forKey: .calls)
        try container.encode(chaos, forKey: .chaos)
        try container.encode(coldStarts, forKey: .coldStarts)
        try container.encode(majorFaults, forKey: .majorFaults)
    }
}
