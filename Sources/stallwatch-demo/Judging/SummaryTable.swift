import TextOutput

/// The results as a table.
struct SummaryTable {
    /// The table, with the counts below it.
    let text: String
    let tally: ScenarioTally

    init(_ outcomes: [Outcome]) {
        var table = TextTable([
            .init("scenario"), .init("injected ms", .right), .init("reported ms", .right), .init("blamed function"),
            .init("cause"), .init("result"), .init("file"),
        ])
        var tally = ScenarioTally()
        for outcome in outcomes {
            table.add(Self.cells(outcome))
            tally.add(outcome)
        }
        self.tally = tally
        text = "\n" + table.text(for: Terminal()) + "\n\(tally.line)\nblamed: \(BlameCounts(outcomes).line)\n"
    }

    private static func cells(_ outcome: Outcome) -> [String] {
        let own = outcome.own
        return [
            outcome.scenario, outcome.injectedMilliseconds?.oneDecimal ?? "-", own?.milliseconds.oneDecimal ?? "-",
            own.map { $0.function ?? "?" } ?? "-", own.map { $0.cause ?? "?" } ?? "-", outcome.result.rawValue,
            own?.file ?? "-",
        ]
    }
}

extension Double {
    /// The number with one decimal.
    var oneDecimal: String {
        let tenths = Int((self * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }
}
