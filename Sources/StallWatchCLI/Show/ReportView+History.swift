import StallReports
import TextOutput

extension ReportView {
    /// The most loops besides the stalled one that have a line.
    private static let maximumHistoryLoops = 8
    private static let historyLabelWidth = 16

    /// What the loops did before the stall and during it, one line for each; empty if none had a turn of a millisecond.
    var history: String {
        guard let history = report.history, let own = history.loops.first else { return "" }
        let others = history.loops.dropFirst().filter { !$0.turns.isEmpty }
        guard !own.turns.isEmpty || !others.isEmpty else { return "" }
        let shown = [own] + others.prefix(Self.maximumHistoryLoops)
        let labels = min(shown.map { $0.label.printable.columns }.max() ?? 0, Self.historyLabelWidth)
        let summaries = shown.map(Self.summary)
        let rest = labels + (summaries.map(\.columns).max() ?? 0) + 6
        let cells = min(Self.barWidth, max((terminal.width ?? 120) - rest, 10))
        let end = max(report.durationMilliseconds, 1)
        let period = -max(history.windowMilliseconds, 1)...end
        let cell = (period.upperBound - period.lowerBound) / Double(cells)
        let title = "The \(history.windowMilliseconds.duration) before, and the stall (one cell is \(cell.duration))"
        var text = paragraph(title, .bold)
        for (index, loop) in shown.enumerated() {
            let stall = StallReport.Turn(atMilliseconds: 0, durationMilliseconds: end, waitedMilliseconds: 0)
            let strip = TurnStrip(loop.turns + (index == 0 ? [stall] : []), over: period, cells: cells)
            let label = String(loop.label.printable.prefix(Self.historyLabelWidth)).padded(to: labels)
            let turns = terminal.style(strip.text, index == 0 ? .red : .blue)
            text += "  \(label)  \(turns)  \(terminal.style(summaries[index], .faint))\n"
        }
        let left = history.loops.count - shown.count + (history.omittedLoops ?? 0)
        if left > 0 {
            let loops = counted(left, "other loop is", "other loops are")
            text += paragraph("\(loops) not shown: idle, or over the limit.")
        }
        return text
    }

    /// How many turns of a millisecond or more a loop had, and the longest.
    private static func summary(of loop: StallReport.LoopHistory) -> String {
        guard let longest = loop.turns.max(by: { $0.durationMilliseconds < $1.durationMilliseconds }) else {
            return "no turn of 1 ms"
        }
        let count = "\(loop.omitsOlderTurns == true ? "over " : "")\(counted(loop.turns.count, "turn", "turns"))"
        return "\(count), \(longest.isOngoing == true ? "one for" : "at most") \(longest.durationMilliseconds.duration)"
    }
}

/// A sparkline of a loop's turns: each cell shows the busy share of its time.
struct TurnStrip: Equatable {
    /// The share of each cell, 0 to 1.
    let shares: [Double]

    /// Divides a period, in milliseconds after the beginning of the stall, into cells.
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

    private static let signs: [Character] = ["·", "░", "▒", "▓", "█"]

    /// One character for each cell: the darker, the busier; a point for no turn at all.
    var text: String { String(shares.map { Self.signs[$0 > 0 ? min(Int($0 * 4) + 1, 4) : 0] }) }
}
