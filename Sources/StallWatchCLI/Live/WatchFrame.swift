import StallReports
import TextOutput

/// The screen of `watch` at one moment.
struct WatchFrame {
    /// A loop, and its load over the last interval.
    struct Loop: Equatable {
        var state: ControlAnswer.LoopState
        /// The share of the interval that the loop has spent in turns, 0 to 1; `nil` if it is not known yet.
        var busy: Double?

        var isStalled: Bool { (state.turnMilliseconds ?? 0) >= state.thresholdMilliseconds }
    }

    var process: String
    var pid: Int32
    var time: Timestamp
    var loops: [Loop]
    /// The latest stalls, the newest first.
    var stalls: [ControlAnswer.StallSummary]
    /// Why there is no newer answer; `nil` if this is the newest.
    var problem: String?

    /// The size of a terminal, in characters.
    struct Size: Equatable {
        var columns: Int
        var rows: Int
    }

    /// The narrowest screen that is drawn; a narrower terminal shows its left part.
    static let leastColumns = 40
    /// The rows beside the loops and the stalls: title, blank, head of the loops, blank, head of the stalls.
    private static let fixedRows = 5

    /// The lines of the screen: at most as many as the terminal has rows, each with at most as many columns as it has.
    func lines(in size: Size, for terminal: Terminal) -> [String] {
        let columns = max(size.columns, Self.leastColumns)
        var lines = [title(columns, terminal), ""]
        let layout = WatchLoopLine(loops, columns: columns)
        // The loops have at most half of the screen, and the stalls what is left.
        let room = max((size.rows - Self.fixedRows) / 2, 1)
        let shown = Self.mostImportant(loops, room)
        lines.append(terminal.style(layout.head, .bold))
        lines += shown.map { layout.text(of: $0, for: terminal) }
        if shown.count < loops.count {
            lines.append(
                terminal.style("… and \(counted(loops.count - shown.count, "other loop", "other loops"))", .faint))
        }
        lines += ["", terminal.style("latest stalls (UTC)", .bold)]
        if stalls.isEmpty { lines.append("none") }
        for stall in stalls {
            guard lines.count < size.rows else { break }
            lines += self.lines(of: stall, columns, terminal)
        }
        return Array(lines.prefix(max(size.rows, 0)))
    }

    private func title(_ columns: Int, _ terminal: Terminal) -> String {
        let left = "\(process.printable) (\(pid))"
        let right = problem?.printable ?? "\(time.timeOfDay) UTC  q: quit"
        let room = max(columns - right.columns - 2, 10)
        let name = left.truncated(to: room)
        let rest = right.truncated(to: max(columns - name.columns - 2, 0))
        let gap = String(repeating: " ", count: max(columns - name.columns - rest.columns, 0))
        return terminal.style(name, .bold) + gap
            + (problem == nil ? terminal.style(rest, .faint) : terminal.style(rest, .red))
    }

    /// Returns the loops that fit: the stalled ones first, then the busiest; in their own order.
    private static func mostImportant(_ loops: [Loop], _ room: Int) -> [Loop] {
        guard loops.count > room else { return loops }
        let order = loops.indices.sorted { left, right in
            let (first, second) = (loops[left], loops[right])
            if first.isStalled != second.isStalled { return first.isStalled }
            return (first.busy ?? 0, right) > (second.busy ?? 0, left)
        }
        return order.prefix(max(room - 1, 1)).sorted().map { loops[$0] }
    }

    /// Returns the lines of a stall: its time, loop, duration and function, and its cause as a sentence.
    private func lines(of stall: ControlAnswer.StallSummary, _ columns: Int, _ terminal: Terminal) -> [String] {
        var milliseconds = stall.durationMilliseconds
        if stall.isOngoing {
            let age = time.microsecondsSince1970 - stall.startedAt.microsecondsSince1970
            milliseconds = max(milliseconds, Double(age) / 1_000)
        }
        let head = "\(stall.startedAt.timeOfDay)  \(stall.loop.printable.truncated(to: 16))  "
        let words = (stall.isOngoing ? "\(stall.kind.verbs.perfect) " : "") + milliseconds.duration
        let function =
            stall.function.map { "  \($0.printable)" } ?? stall.cause.map { "  \($0.rawValue.printable)" } ?? ""
        let room = max(columns - head.columns - words.columns, 0)
        let first =
            terminal.style(head, .faint) + terminal.style(words, stall.isOngoing ? .red : .yellow)
            + function.truncated(to: room)
        let sentence = stall.sentence.map { "  \($0.printable)".wrapped(to: columns, indentation: "  ") } ?? ""
        let rest = sentence.split(separator: "\n").map(String.init)
        return [first] + rest.prefix(Self.rowsOfSentence)
    }

    /// The most rows of a stall's sentence.
    private static let rowsOfSentence = 3
}

/// The output of `watch --json` for one interval.
struct WatchLine: Encodable {
    let time: Timestamp
    let pid: Int32
    let loops: [Loop]
    /// The latest stalls, the newest first.
    let stalls: [ControlAnswer.StallSummary]
    /// Why there is no newer answer; none if this is the newest.
    let problem: String?

    struct Loop: Encodable {
        let label: String
        let turnMilliseconds: Double?
        let thresholdMilliseconds: Double
        /// The share of the interval that the loop has spent in turns, 0 to 1.
        let busy: Double?
        let stalls: Int
    }

    init(_ frame: WatchFrame) {
        time = frame.time
        pid = frame.pid
        loops = frame.loops.map { loop in
            Loop(
                label: loop.state.label, turnMilliseconds: loop.state.turnMilliseconds,
                thresholdMilliseconds: loop.state.thresholdMilliseconds, busy: loop.busy, stalls: loop.state.stalls)
        }
        stalls = frame.stalls
        problem = frame.problem
    }
}

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

    var head: String {
        let share = "busy".padded(to: bar + Self.gap.count + Self.shareColumns)
        let cells = ["loop".padded(to: label), share, "state".padded(to: state)]
        return cells.joined(separator: Self.gap)
            + (showsStalls ? Self.gap + "stalls".padded(to: Self.stallColumns, .right) : "")
    }

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
