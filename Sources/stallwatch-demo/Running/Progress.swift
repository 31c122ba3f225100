import Glibc

/// Shows how far the demo is: a line a scenario, which is updated in place on a terminal.
struct Progress: Sendable {
    enum Style: Sendable {
        /// Nothing is shown.
        case silent
        /// A line for each scenario that is over.
        case plain
        /// A line for each scenario from its beginning on, cut to this many columns, as it must fit in one row.
        case inPlace(columns: Int)
    }

    let style: Style
    /// How many scenarios there are.
    let total: Int
    /// Where the text goes.
    var write: @Sendable (String) throws(DemoFailure) -> Void = StandardOutput.write

    /// To the line's beginning, and clear to its end (ECMA-48).
    static let rewind = "\r\u{1b}[K"

    func begin(_ scenario: Scenario, _ index: Int, stall: Duration) throws(DemoFailure) {
        guard case .inPlace(let columns) = style else { return }
        var text = counter(index) + scenario.name + ": " + scenario.summary
        if stall > .zero { text += ", \(Int(stall.milliseconds.rounded())) ms" }
        // One less than there are: a terminal may break the line as soon as the last column is written.
        try write(Self.rewind + text.prefix(max(columns - 1, 0)))
    }

    func finish(_ outcome: Outcome, _ index: Int) throws(DemoFailure) {
        let line = counter(index) + Self.describe(outcome) + "\n"
        switch style {
        case .silent: return
        case .plain: try write(line)
        case .inPlace: try write(Self.rewind + line)
        }
    }

    /// The demo cannot go on: what comes next starts on a line of its own.
    func abandon() throws(DemoFailure) {
        if case .inPlace = style { try write("\n") }
    }

    private func counter(_ index: Int) -> String {
        let all = String(total)
        return "[" + String(index + 1).padded(to: all.count, .right) + "/" + all + "] "
    }

    /// What came of a scenario, in a line.
    static func describe(_ outcome: Outcome) -> String {
        var text = "\(outcome.scenario): \(outcome.verdict.rawValue)"
        if let reason = outcome.unavailable { return text + ", " + reason }
        if let injected = outcome.injectedMilliseconds { text += ", injected \(injected.oneDecimal) ms" }
        guard let own = outcome.own else { return text + ", no report" }
        return text + ", reported \(own.milliseconds.oneDecimal) ms in \(own.function ?? "no function")"
    }
}

extension Progress.Style {
    /// In place if standard output is a terminal that can move its cursor, else plain.
    static var forStandardOutput: Self {
        guard isatty(STDOUT_FILENO) == 1, let terminal = getenv("TERM"), strcmp(terminal, "dumb") != 0 else {
            return .plain
        }
        var size = winsize()
        // A terminal that does not know its size (0 columns) has at least this many.
        let isKnown = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0
        return .inPlace(columns: isKnown ? Int(size.ws_col) : 80)
    }
}
