/// The verdicts as a table for people.
struct SummaryTable {
    /// The table, with a sentence below it.
    let text: String

    init(_ outcomes: [Outcome]) {
        let header = ["scenario", "injected ms", "reported ms", "blamed function", "cause", "verdict", "file"]
        let alignments: [Alignment] = [.left, .right, .right, .left, .left, .left, .left]
        let rows = [header] + outcomes.map(Self.cells)
        let widths = header.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let lines = rows.map { row in
            let cells = row.indices.map { row[$0].padded(to: widths[$0], alignments[$0]) }
            return cells.joined(separator: "  ").trimmingTrailingSpaces + "\n"
        }
        let good = outcomes.count { $0.verdict == .ok }
        let missing = outcomes.count { $0.verdict == .notAvailable }
        let note = missing == 0 ? "" : " \(missing) could not be judged on this machine."
        text = "\n" + lines.joined() + "\n\(good) of \(outcomes.count) verdicts are ok.\(note)\n"
    }

    private static func cells(_ outcome: Outcome) -> [String] {
        let own = outcome.own
        return [
            outcome.scenario, outcome.injectedMilliseconds?.oneDecimal ?? "-", own?.milliseconds.oneDecimal ?? "-",
            own.map { $0.function ?? "?" } ?? "-", own.map { $0.cause ?? "?" } ?? "-", outcome.verdict.rawValue,
            own?.file ?? "-",
        ]
    }
}

/// To which side of a column a text is put.
enum Alignment {
    case left, right
}

extension String {
    /// The text with spaces up to `width`.
    func padded(to width: Int, _ alignment: Alignment = .left) -> String {
        let spaces = String(repeating: " ", count: Swift.max(width - count, 0))
        return alignment == .left ? self + spaces : spaces + self
    }

    fileprivate var trimmingTrailingSpaces: Substring {
        self[..<(lastIndex { $0 != " " }.map(index(after:)) ?? startIndex)]
    }
}

extension Double {
    /// The number with one digit behind the point.
    var oneDecimal: String {
        let tenths = Int((self * 10).rounded())
        return "\(tenths / 10).\(abs(tenths % 10))"
    }
}
