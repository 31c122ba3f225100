import StallReports
import TextOutput

/// The screen of `watch` at one moment, which `watch --json` prints for each interval.
struct WatchFrame: Encodable {
    struct LoopRow: Equatable, Encodable {
        var state: LoopStatistics
        /// The share of the interval that the loop has spent in turns, 0 to 1; `nil` if it is not known yet.
        var busy: Double?
        /// The load of each of the last seconds, the newest last; `nil` where it is not known.
        var history: [Double?] = []

        func encode(to encoder: any Encoder) throws {
            try Joined(base: state, others: ["busy": busy].compactMapValues(\.self)).encode(to: encoder)
        }
    }

    private enum CodingKeys: CodingKey { case time, pid, loops, stalls, tasks, problem }

    var process: String
    var pid: Int32
    var time: Timestamp
    var loops: [LoopRow]
    /// The latest stalls, the newest first.
    var stalls: [ControlAnswer.StallSummary]
    /// Stalls that earlier answers had, the newest first.
    var earlier: [ControlAnswer.StallSummary] = []
    /// The Swift tasks; `nil` if they are not known, or there are none.
    var tasks: TaskStandings.Summary?
    /// Why there is no newer answer; `nil` if this is the newest.
    var problem: String?

    struct Size: Equatable {
        var columns: Int
        var rows: Int
    }

    /// The narrowest screen that is drawn; a narrower terminal shows its left part.
    static let leastColumns = 40
    /// The rows beside the loops and the stalls: title, blank, head of the loops, blank, head of the stalls.
    private static let fixedRows = 5

    /// At most as many lines and columns as the terminal has; `opened` is the opened stall's text, if it was found.
    func lines(
        in size: Size, for terminal: Terminal, _ controls: WatchControls = WatchControls(), opened: String? = nil
    ) -> [String] {
        let columns = max(size.columns, Self.leastColumns)
        if controls.showsHelp { return Array(([title(columns, terminal), ""] + Self.help).prefix(max(size.rows, 0))) }
        if controls.isOpen, let group = chosen(controls) {
            let lines = openedLines(group, columns, opened)
            let first = min(controls.scrolled, Self.hidden(of: lines, in: size))
            return Array(([title(columns, terminal), ""] + lines[first...]).prefix(max(size.rows, 0)))
        }
        var lines = [title(columns, terminal), ""]
        let layout = WatchLoopLine(loops, columns: columns)
        // The loops have at most half of the screen, and the stalls what is left.
        let room = max((size.rows - Self.fixedRows - (tasks == nil ? 0 : 1)) / 2, 1)
        let shown = Self.mostImportant(loops, room)
        lines.append(terminal.style(layout.head, .bold))
        lines += shown.map { layout.text(of: $0, for: terminal) }
        if shown.count < loops.count {
            lines.append(
                terminal.style("… and \(counted(loops.count - shown.count, "other loop", "other loops"))", .faint))
        }
        let missed = loops.reduce(0) { $0 &+ $1.state.missed }
        if missed > 0 {
            let words = "\(counted(missed, "stall was", "stalls were")) over when the watchdog looked"
            lines.append(words.truncated(to: columns))
        }
        if let tasks { lines.append(tasks.text.printable.truncated(to: columns)) }
        lines += ["", terminal.style("stalls, by \(controls.order.rawValue)", .bold)]
        let groups = groups(by: controls.order)
        if groups.isEmpty { lines.append("none") }
        let place = controls.place(in: groups) ?? 0
        // Each group has about two lines.
        let visible = max((size.rows - lines.count) / 2, 1)
        for (number, group) in groups.enumerated().dropFirst(max(place - visible + 1, 0)) {
            guard lines.count < size.rows else { break }
            lines += self.lines(of: group, isChosen: number == place, columns, terminal)
        }
        return Array(lines.prefix(max(size.rows, 0)))
    }

    private func openedLines(_ group: WatchGroup, _ columns: Int, _ opened: String?) -> [String] {
        (opened ?? unopened(group.latest, columns)).split(separator: "\n", omittingEmptySubsequences: false)
            .map(String.init)
    }

    /// The lines of the opened stall that are scrolled out when its last one is on the screen; 0 if none is open.
    func mostScrolled(in size: Size, _ controls: WatchControls, opened: String?) -> Int {
        guard controls.isOpen, let group = chosen(controls) else { return 0 }
        return Self.hidden(of: openedLines(group, max(size.columns, Self.leastColumns), opened), in: size)
    }

    /// The number of a stall's lines for which there is no room below the title.
    private static func hidden(of lines: [String], in size: Size) -> Int { max(lines.count - max(size.rows - 2, 0), 0) }

    func groups(by order: WatchControls.Order) -> [WatchGroup] { WatchGroup.groups(of: stalls + earlier, by: order) }

    func chosen(_ controls: WatchControls) -> WatchGroup? {
        let groups = groups(by: controls.order)
        return controls.place(in: groups).map { groups[$0] }
    }

    private static let help = [
        "up, down   choose a group of stalls, or scroll an opened one",
        "Enter      open the latest stall of the group, and close it",
        "s          sort by newest, longest or count",
        "Esc        back to the loops",
        "?          this help",
        "q          quit",
    ]

    private func unopened(_ stall: ControlAnswer.StallSummary, _ columns: Int) -> String {
        let place = stall.function.map { " in \($0)" } ?? ""
        let verb = stall.isOngoing ? stall.kind.verbs.perfect : stall.kind.verbs.past
        let words = "\(stall.loop) \(verb) \(stall.durationMilliseconds.duration)\(place)"
        let next =
            "The report is in neither folder named stalls, of the process or here: stallwatch show REPORTS --id \(stall.id)"
        return [words, stall.sentence ?? "", "began \(stall.startedAt)", "", next]
            .map { $0.printable.wrapped(to: columns, indentation: "  ") }.joined(separator: "\n")
    }

    private func title(_ columns: Int, _ terminal: Terminal) -> String {
        let right = problem?.printable ?? "\(time.timeOfDay) UTC  ?: help  q: quit"
        let name = "\(process.printable) (\(pid))".truncated(to: max(columns - right.columns - 2, 10))
        let rest = right.truncated(to: max(columns - name.columns - 2, 0))
        let gap = String(repeating: " ", count: max(columns - name.columns - rest.columns, 0))
        return terminal.style(name, .bold) + gap + terminal.style(rest, problem == nil ? .faint : .red)
    }

    /// Returns the loops that fit: the stalled ones first, then the busiest; in their own order.
    private static func mostImportant(_ loops: [LoopRow], _ room: Int) -> [LoopRow] {
        guard loops.count > room else { return loops }
        let order = loops.indices.sorted { left, right in
            let (first, second) = (loops[left], loops[right])
            if first.state.isStalled != second.state.isStalled { return first.state.isStalled }
            return (first.busy ?? 0, right) > (second.busy ?? 0, left)
        }
        return order.prefix(max(room - 1, 1)).sorted().map { loops[$0] }
    }

    private func lines(of group: WatchGroup, isChosen: Bool, _ columns: Int, _ terminal: Terminal) -> [String] {
        let stall = group.latest
        let age = max(Double(time.microsecondsSince1970 - stall.startedAt.microsecondsSince1970) / 1_000, 0)
        var words = (group.count > 1 ? "up to " : "") + group.longest.duration
        if stall.isOngoing { words = "\(stall.kind.verbs.perfect) \(max(stall.durationMilliseconds, age).duration)" }
        let number = group.count > 1 ? "×\(group.count)" : ""
        let head =
            "\(isChosen ? ">" : " ") \(number.padded(to: 4)) \("\(Self.age(age)) ago".padded(to: 10, .right))  "
            + "\(stall.loop.printable.truncated(to: min(16, columns / 5)))  "
        let shown = words.truncated(to: max(columns - head.columns, 0))
        let function =
            stall.function.map { "  \($0.printable)" } ?? stall.cause.map { "  \($0.rawValue.printable)" } ?? ""
        let first =
            terminal.style(head, isChosen ? .bold : .faint) + terminal.style(shown, stall.isOngoing ? .red : .yellow)
            + function.truncated(to: max(columns - head.columns - shown.columns, 0))
        let sentence = stall.sentence.map { "    \($0.printable)".wrapped(to: columns, indentation: "    ") } ?? ""
        let rest = sentence.split(separator: "\n").map(String.init)
        return [first] + rest.prefix(Self.rowsOfSentence)
    }

    static func age(_ milliseconds: Double) -> String {
        let seconds = Int(min(max(milliseconds / 1_000, 0), 1e9))
        return seconds < 60 ? "\(seconds) s" : seconds < 3_600 ? "\(seconds / 60) min" : "\(seconds / 3_600) h"
    }

    private static let rowsOfSentence = 3
}

struct WatchLoopLine {
    private static let gap = "  "
    /// "100.0 %".
    private static let shareColumns = 7
    /// A column at the end, with the narrowest screen that has it.
    private typealias End = (title: String, width: Int, screen: Int)
    private static let ends: [End] = [("p99", 8, 100), ("threshold", 9, 72), ("stalls", 6, 60)]

    private let label: Int
    private let bar: Int
    private let state: Int
    private let ends: [End]

    init(_ loops: [WatchFrame.LoopRow], columns: Int) {
        label = min(max(loops.map { $0.state.label.printable.columns }.max() ?? 0, 4), columns / 4)
        let longest = loops.map { LoopStateText.state(of: $0.state).columns }.max() ?? 0
        // Wide enough for "in a turn for 999 ms", so that the bars keep their length.
        state = min(max(longest, 20), columns / 3)
        ends = Self.ends.filter { columns >= $0.screen }
        let others = label + Self.shareColumns + state + ends.reduce(0) { $0 + Self.gap.count + $1.width }
        bar = min(max(columns - others - 3 * Self.gap.count, 3), LoadHistory.seconds)
    }

    var head: String {
        let title = "busy, last \(LoadHistory.seconds) s"
        let room = bar + Self.gap.count + Self.shareColumns
        let share = (title.columns > room ? "busy" : title).padded(to: room)
        let cells = ["loop".padded(to: label), share, "state".padded(to: state)]
        return (cells + ends.map { $0.title.padded(to: $0.width, .right) }).joined(separator: Self.gap)
    }

    func text(of loop: WatchFrame.LoopRow, for terminal: Terminal) -> String {
        let busy = min(max(loop.busy ?? 0, 0), 1)
        let line = Sparkline.text(loop.history, columns: bar).padded(to: bar, .right)
        let share = loop.busy == nil ? "" : "\((busy * 100).fixed(1)) %"
        let color: Terminal.Style = busy < 0.5 ? .green : busy < 0.9 ? .yellow : .red
        let words = LoopStateText.state(of: loop.state).truncated(to: state).padded(to: state)
        let cells = [
            loop.state.label.printable.truncated(to: label).padded(to: label),
            terminal.style(line, color),
            share.padded(to: Self.shareColumns, .right),
            loop.state.isStalled ? terminal.style(words, .red) : words,
        ]
        let values = [
            "p99": loop.state.turnDuration(quantile: 0.99)?.text ?? "", "threshold": loop.state.threshold.text,
            "stalls": "\(loop.state.stalls)",
        ]
        let last = ends.map { (values[$0.title] ?? "").truncated(to: $0.width).padded(to: $0.width, .right) }
        let text = (cells + last).joined(separator: Self.gap)
        return !ends.isEmpty || terminal.hasColor ? text : String(text.reversed().drop { $0 == " " }.reversed())
    }
}
