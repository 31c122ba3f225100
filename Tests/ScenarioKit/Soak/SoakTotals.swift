struct SoakTotals: Encodable, Sendable {
    struct Failure: Equatable, Encodable, Sendable {
        var scenario: String
        /// The scenario's place in the order that the seed gives, from 1.
        var number: Int
        var result: ScenarioResult
        var injectedMilliseconds: Double?
        var reports: [String]
    }

    /// The number of failures with details; more of them are only counted.
    static let listedFailures = 100
    private static let afterTheLast = "(after the last)"

    let seed: UInt64
    var seconds = 0.0
    var tally = ScenarioTally()
    var rounds = 0
    var falseAlarms = 0
    /// The number of injected stalls that must be reported, and the number of those that were.
    var stalls = 0
    var reported = 0
    var failures: [Failure] = []
    var health: ProcessHealth?
    var growth: HealthGrowth?
    var leftChildren: [LeftChild] = []
    var calls = InterruptionProbes.Count()
    var chaos: [ChaosKind: ChaosCount] = [:]
    var coldStarts = 0
    var majorFaults = 0
    var wasInterrupted = false

    init(seed: UInt64) {
        self.seed = seed
    }

    mutating func add(_ outcome: Outcome) {
        tally.add(outcome)
        let result = outcome.result
        if let expected = outcome.expected, result != .notAvailable, result != .inconclusive {
            stalls += expected.count
            reported += min(outcome.ownReports.count, expected.count)
        }
        if result == .falseAlarm { falseAlarms += 1 }
        guard result.isFailure else { return }
        addFailure(of: outcome.scenario, result, injected: outcome.injectedMilliseconds, outcome.reports)
    }

    /// Counts reports that came after the last scenario, so that none expected them.
    mutating func addLate(_ reports: [ReportedStall]) {
        guard !reports.isEmpty else { return }
        falseAlarms += 1
        addFailure(of: Self.afterTheLast, .falseAlarm, injected: nil, reports)
        tally.add(.falseAlarm, of: Self.afterTheLast)
    }

    private mutating func addFailure(
        of scenario: String, _ result: ScenarioResult, injected: Double?, _ reports: [ReportedStall]
    ) {
        guard failures.count < Self.listedFailures else { return }
        failures.append(
            Failure(
                scenario: scenario, number: tally.total, result: result, injectedMilliseconds: injected,
                reports: reports.map(\.file)
            )
        )
    }
}

extension SoakTotals {
    /// Everything that is wrong, one phrase each; empty if the soak has passed.
    var problems: [String] {
        var problems: [String] = []
        func add(_ count: Int, _ text: String) {
            if count > 0 { problems.append("\(count) \(text)") }
        }
        if tally.failed > 0 {
            // With the numbers, because the seed gives the same order again.
            let names = failures.prefix(5).map { "\($0.scenario) (no. \($0.number): \($0.result.rawValue))" }
            problems.append("\(tally.failed) scenarios failed, \(names.joined(separator: ", "))")
        }
        problems += tally.unjudgedProblems
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
                "only \(calls.captured) of \(calls.reported) calls were captured: too few to show that a capture interrupts none"
            )
        }
        for (kind, count) in chaos.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            add(count.failed, "actions of the kind \(kind.rawValue) failed")
        }
        if chaos[.clock]?.isRefused == true { problems.append("steps of the machine's clock are not permitted") }
        if wasInterrupted { problems.append("a signal ended it early") }
        return problems
    }

    var line: String {
        let result = problems.isEmpty ? "ok" : "FAILED: " + problems.joined(separator: "; ")
        return [
            "soak \(result). Seed \(seed), \(Int(seconds.rounded())) s",
            "\(rounds) whole rounds: \(tally.line)",
            "\(reported) of \(stalls) stalls reported, \(falseAlarms) false alarms",
            "\(calls.calls) interruptible calls: \(calls.reported) reported, \(calls.captured) captured, "
                + "\(calls.interrupted) EINTR, \(calls.early) early",
            grownText, "\(leftChildren.count) children left", "beside it " + chaosText,
        ].joined(separator: " | ") + "\n"
    }

    private var grownText: String {
        guard let growth else { return "growth not judged: fewer than 6 scenarios after the warm-up" }
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

/// The totals of a soak as the summary file has them, with what is wrong.
struct SoakSummary: Encodable {
    let problems: [String]
    let totals: SoakTotals

    init(_ totals: SoakTotals) {
        problems = totals.problems
        self.totals = totals
    }
}
