import TextOutput

/// The durations of a loop's turns as bars, one for each power of two.
enum TurnHistogramText {
    /// The length of the longest bar.
    private static let width = 40

    /// A range of durations.
    struct Row: Equatable {
        /// The upper bound in milliseconds; `nil` for what is longer than 4.8 hours.
        var below: Double?
        var turns: UInt64
    }

    /// Adds up the turns of a loop by power of two of a microsecond, from the shortest to the longest.
    ///
    /// - Parameter latency: The number of turns by upper bound, in microseconds.
    /// - Returns: The rows, also those without turns in between.
    static func rows(_ latency: [Double: UInt64]) -> [Row] {
        var counts: [Int: UInt64] = [:]
        var beyond: UInt64 = 0
        for (bound, turns) in latency where turns > 0 {
            if bound.isFinite { counts[power(of: bound), default: 0] &+= turns } else { beyond &+= turns }
        }
        var rows: [Row] = []
        if let first = counts.keys.min(), let last = counts.keys.max() {
            rows = (first...last).map { Row(below: Double(1 << UInt64($0)) * 1.024 / 1_000, turns: counts[$0] ?? 0) }
        }
        if beyond > 0 { rows.append(Row(below: nil, turns: beyond)) }
        return rows
    }

    /// The least power of two, times 1.024, that is not below `bound`.
    ///
    /// The bounds of a histogram are powers of two nanoseconds and eighths between them.
    private static func power(of bound: Double) -> Int {
        var power = 0
        while power < 62, Double(1 << UInt64(power)) * 1.024 < bound * 0.999_999 { power += 1 }
        return power
    }

    /// The rows with bars, after the loop's label; empty for a loop without turns.
    static func text(_ loop: StatisticsSum.Loop, for terminal: Terminal) -> String {
        let rows = rows(loop.latency)
        guard let most = rows.map(\.turns).max(), most > 0 else { return "" }
        var table = TextTable([
            .init("turns of \(loop.label)", .right), .init("count", .right), .init("", isFlexible: true),
        ])
        for row in rows {
            // A row with turns has a bar, however few they are.
            let length = row.turns == 0 ? 0 : max(Int((Double(row.turns) / Double(most) * Double(width)).rounded()), 1)
            table.add([
                row.below.map { "< \($0.duration)" } ?? "> 4.8 h", String(row.turns),
                String(repeating: "█", count: length),
            ])
        }
        var text = "\n" + table.text(for: terminal)
        if let threshold = loop.thresholdMilliseconds {
            text += "Threshold: \(threshold.duration)\(loop.isThresholdAdaptive ? ", adaptive" : "")\n"
        }
        return text
    }
}
