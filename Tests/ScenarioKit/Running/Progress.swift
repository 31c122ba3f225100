import Glibc
import TextOutput

/// Shows the demo's progress: a line per scenario, which changes in place on a terminal.
package struct Progress: Sendable {
    package enum Style: Sendable {
        /// Shows nothing.
        case silent
        /// Writes a line for each finished scenario.
        case plain
        /// Writes a line when a scenario begins, cut to this many columns because it must fit in one row.
        case inPlace(columns: Int)
    }

    package let style: Style
    /// The number of scenarios.
    package let total: Int
    /// Writes the text.
    package var write: @Sendable (String) throws(DemoFailure) -> Void

    package init(
        style: Style, total: Int, write: @escaping @Sendable (String) throws(DemoFailure) -> Void = StandardOutput.write
    ) {
        self.style = style
        self.total = total
        self.write = write
    }

    /// Moves to the line's beginning and clears it (ECMA-48).
    package static let rewind = "\r\u{1b}[K"

    package func begin(_ scenario: Scenario, _ index: Int, stall: Duration) throws(DemoFailure) {
        guard case .inPlace(let columns) = style else { return }
        var text = counter(index) + scenario.name + ": " + scenario.summary
        if stall > .zero { text += ", \(Int(stall.milliseconds.rounded())) ms" }
        // One column less: a terminal may break the line as soon as the last column is written.
        try write(Self.rewind + text.prefix(max(columns - 1, 0)))
    }

    package func finish(_ outcome: Outcome, _ index: Int) throws(DemoFailure) {
        try write(Self.describe(outcome), index)
    }

    /// Writes why the scenario runs again.
    package func repeats(_ outcome: Outcome, _ index: Int) throws(DemoFailure) {
        try write(Self.describe(outcome) + "; again, because the CPUs were taken away", index)
    }

    /// Ends the current line, because the demo cannot go on.
    package func abandon() throws(DemoFailure) {
        if case .inPlace = style { try write("\n") }
    }

    /// Writes a line that stays.
    private func write(_ text: String, _ index: Int) throws(DemoFailure) {
        let line = counter(index) + text + "\n"
        switch style {
        case .silent: return
        case .plain: try write(line)
        case .inPlace: try write(Self.rewind + line)
        }
    }

    private func counter(_ index: Int) -> String {
        let all = String(total)
        return "[" + String(index + 1).padded(to: all.count, .right) + "/" + all + "] "
    }

    /// Returns the outcome of a scenario in a line.
    package static func describe(_ outcome: Outcome) -> String {
        var text = "\(outcome.scenario): \(outcome.result.rawValue)"
        if let reason = outcome.unavailable { return text + ", " + reason }
        if let injected = outcome.injectedMilliseconds { text += ", injected \(injected.oneDecimal) ms" }
        guard let own = outcome.own else { return text + ", no report" }
        return text + ", reported \(own.milliseconds.oneDecimal) ms in \(own.function ?? "no function")"
    }
}

extension Progress.Style {
    /// `inPlace` if standard output is a terminal that can move its cursor, otherwise `plain`.
    package static var forStandardOutput: Self {
        guard isatty(STDOUT_FILENO) == 1, let terminal = getenv("TERM"), strcmp(terminal, "dumb") != 0 else {
            return .plain
        }
        var size = winsize()
        // A terminal that does not know its size (0 columns) has at least 80.
        let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        return .inPlace(columns: isKnown ? Int(size.ws_col) : 80)
    }
}
