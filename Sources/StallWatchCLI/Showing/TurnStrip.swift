import StallReports

/// The turns of one loop as a line of equal cells, each with the share of its time that turns took.
struct TurnStrip: Equatable {
    /// The share of each cell, 0 to 1.
    let shares: [Double]

    /// Divides a period into cells.
    ///
    /// - Parameters:
    ///   - turns: The turns, of which only the parts inside the period count.
    ///   - period: The period in milliseconds after the beginning of the stall; not empty.
    ///   - cells: The number of cells, 1 or more.
    init(_ turns: [StallReport.Turn], over period: ClosedRange<Double>, cells: Int) {
        let cell = (period.upperBound - period.lowerBound) / Double(cells)
        shares = (0..<cells).map { index in
            let begin = period.lowerBound + Double(index) * cell
            let busy = turns.reduce(0) { sum, turn in
                let end = min(turn.atMilliseconds + turn.durationMilliseconds, begin + cell)
                return sum + max(end - max(turn.atMilliseconds, begin), 0)
            }
            return min(busy / cell, 1)
        }
    }

    /// One character for each cell: the darker, the busier.
    var text: String {
        String(
            shares.map { share -> Character in
                switch share {
                case 0: "·"
                case ..<0.25: "░"
                case ..<0.5: "▒"
                case ..<0.75: "▓"
                default: "█"
                }
            })
    }
}
