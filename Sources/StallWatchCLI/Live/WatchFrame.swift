import StallReports
import TextOutput

/// The screen of `watch` at one moment.
struct WatchFrame {
    /// A loop, and its load over the last interval.
    struct Loop: Equatable {
        var state: ControlAnswer.LoopState
        /// The share of the interval that the loop has spent in turns, 0 to 1; `nil` if it is not known yet.
        var busy: Double?

        /// Whether the loop is in a stall.
        var isStalled: Bool { (state.turnMilliseconds ?? 0) >= state.thresholdMilliseconds }
    }

    /// The process's name.
    var process: String
    var pid: Int32
    /// The time of the answer.
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

    /// Returns the lines of the screen.
    ///
    /// - Parameters:
    ///   - size: The size of the terminal.
    ///   - terminal: The styles that it shows.
    /// - Returns: At most as many lines as the terminal has rows, each with at most as many columns as it has.
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
        let words = (stall.isOngoing ? "stalled for " : "") + milliseconds.duration
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
