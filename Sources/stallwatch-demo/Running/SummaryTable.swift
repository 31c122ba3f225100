/// The results as a table.
struct SummaryTable {
    /// The table, with the counts below it.
    let text: String
    let tally: ScenarioTally

    init(_ outcomes: [Outcome]) {
        let header = ["scenario", "injected ms", "reported ms", "blamed function", "cause", "result", "file"]
        let alignments: [Alignment] = [.left, .right, .right, .left, .left, .left, .left]
        let rows = [header] + outcomes.map(Self.cells)
        let widths = header.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let lines = rows.map { row in
            let cells = row.indices.map { row[$0].padded(to: widths[$0], alignments[$0]) }
            return cells.joined(separator: "  ").trimmingTrailingSpaces + "\n"
        }
        var tally = ScenarioTally()
        for outcome in outcomes { tally.add(outcome) }
        self.tally = tally
        text = "\n" + lines.joined() + "\n\(tally.line)\nblamed: \(BlameCounts(outcomes).line)\n"
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

extension String {
    /// Returns the text, padded with spaces to `width` characters.
    func padded(to width: Int, _ alignment: Alignment = .left) -> String {
        let spaces = String(repeating: " ", count: Swift.max(width - count, 0))
        return alignment == .left ? self + spaces : spaces + self
    }

    fileprivate var trimmingTrailingSpaces: Substring {
        self[..<(lastIndex { $0 != " " }.map(index(after:)) ?? startIndex)]
    }
}

extension Double {
    /// The number with one decimal.
    var oneDecimal: String {
        let tenths = Int((self * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }
}
