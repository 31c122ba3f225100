import StallReports
import TextOutput

/// The columns of the loops on the screen of `watch`: label, bar, share, state, number of stalls.
struct WatchLoopLine {
    private static let gap = "  "
    /// "100.0 %".
    private static let shareColumns = 7
    private static let stallColumns = 6
    /// The screens that are too narrow for the number of stalls.
    private static let columnsForStalls = 60

    private let label: Int
    private let bar: Int
    private let state: Int
    private let showsStalls: Bool

    init(_ loops: [WatchFrame.Loop], columns: Int) {
        showsStalls = columns >= Self.columnsForStalls
        label = min(max(loops.map { $0.state.label.printable.columns }.max() ?? 0, 4), columns / 4)
        let longest = loops.map { LoopStateText.state(of: $0.state).columns }.max() ?? 0
        // Wide enough for "in a turn for 999 ms", so that the bars keep their length.
        state = min(max(longest, 20), columns / 3)
        let others = label + Self.shareColumns + state + (showsStalls ? Self.stallColumns + Self.gap.count : 0)
        bar = max(columns - others - 3 * Self.gap.count, 3)
    }

    /// The titles of the columns.
    var head: String {
        let share = "busy".padded(to: bar + Self.gap.count + Self.shareColumns)
        let cells = ["loop".padded(to: label), share, "state".padded(to: state)]
        return cells.joined(separator: Self.gap)
            + (showsStalls ? Self.gap + "stalls".padded(to: Self.stallColumns, .right) : "")
    }

    /// A loop's line.
    func text(of loop: WatchFrame.Loop, for terminal: Terminal) -> String {
        let busy = min(max(loop.busy ?? 0, 0), 1)
        let filled = Int((busy * Double(bar)).rounded())
        let share = loop.busy == nil ? "" : "\((busy * 100).fixed(1)) %"
        let color: Terminal.Style = busy < 0.5 ? .green : busy < 0.9 ? .yellow : .red
        let words = LoopStateText.state(of: loop.state).truncated(to: state).padded(to: state)
        let cells = [
            loop.state.label.printable.truncated(to: label).padded(to: label),
            terminal.style(String(repeating: "█", count: filled), color)
                + terminal.style(String(repeating: "░", count: bar - filled), .faint),
            share.padded(to: Self.shareColumns, .right),
            loop.isStalled ? terminal.style(words, .red) : words,
        ]
        let stalls = "\(loop.state.stalls)".truncated(to: Self.stallColumns).padded(to: Self.stallColumns, .right)
        let text = cells.joined(separator: Self.gap) + (showsStalls ? Self.gap + stalls : "")
        return showsStalls || terminal.hasColor ? text : String(text.reversed().drop { $0 == " " }.reversed())
    }
}
