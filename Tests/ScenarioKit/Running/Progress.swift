import Glibc
import LinuxSupport
import StallWatch
import TextOutput

/// Shows the program's progress: a line per scenario, which changes in place on a terminal.
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
    package var write: @Sendable (String) throws(ScenariosFailure) -> Void

    package init(
        style: Style, total: Int,
        write: @escaping @Sendable (String) throws(ScenariosFailure) -> Void = StandardOutput.write
    ) {
        self.style = style
        self.total = total
        self.write = write
    }

    /// Moves to the line's beginning and clears it (ECMA-48).
    package static let rewind = "\r\u{1b}[K"

    package func begin(_ scenario: Scenario, _ index: Int, stall: Duration) throws(ScenariosFailure) {
        guard case .inPlace(let columns) = style else { return }
        var text = counter(index) + scenario.name + ": " + scenario.summary
        if stall > .zero { text += ", \(Int(stall.milliseconds.rounded())) ms" }
        // One column less: a terminal may break the line as soon as the last column is written.
        try write(Self.rewind + text.prefix(max(columns - 1, 0)))
    }

    package func finish(_ outcome: Outcome, _ index: Int) throws(ScenariosFailure) {
        try write(Self.describe(outcome), index)
    }

    /// Writes why the scenario runs again.
    package func repeats(_ outcome: Outcome, _ index: Int) throws(ScenariosFailure) {
        try write(Self.describe(outcome) + "; again, because the CPUs were taken away", index)
    }

    /// Ends the current line, because the program cannot go on.
    package func abandon() throws(ScenariosFailure) {
        if case .inPlace = style { try write("\n") }
    }

    /// Writes a line that stays.
    private func write(_ text: String, _ index: Int) throws(ScenariosFailure) {
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

/// The rule for running a scenario again.
///
/// The program, the soak and the rounds all follow it.
///
/// The host of a virtual machine can take its CPUs away (steal, proc_stat(5)). A result that the clock decides is then no
/// evidence about StallWatch, so the scenario runs again. Each repetition is printed and counted. Every other result
/// stands, whatever the host does.
package struct RetryPolicy: Sendable {
    /// The number of times that a scenario runs at most.
    ///
    /// The last attempt stands.
    package static let maximumAttempts = 5

    /// Starts to watch the host.
    ///
    /// The result says whether the host has since taken more than a disturbing share.
    package var watchHost: @Sendable () -> @Sendable () -> Bool = {
        let steal = CPUSteal()
        return { steal.isDisturbing }
    }

    /// Runs a scenario until its result stands.
    ///
    /// - Parameters:
    ///   - attempt: Runs the scenario once.
    ///   - onRetry: Called with each outcome that does not stand.
    /// - Returns: The outcome that stands, with the number of attempts before it.
    /// - Throws: The errors of `attempt` and `onRetry`.
    package func settle(
        _ attempt: () async throws(ScenariosFailure) -> Outcome, onRetry: (Outcome) throws(ScenariosFailure) -> Void
    ) async throws(ScenariosFailure) -> Outcome {
        var before: Outcome?
        for retries in 0..<Self.maximumAttempts {
            let isDisturbed = watchHost()
            var outcome = try await attempt()
            // What a process can do only once has been judged.
            if outcome.result == .notAvailable, let before { return before }
            outcome.retries = retries
            let isLast = retries == Self.maximumAttempts - 1
            guard !isLast, outcome.result.mayRunAgain(isDisturbed: isDisturbed()) else { return outcome }
            try onRetry(outcome)
            before = outcome
        }
        preconditionFailure("the last attempt has returned")
    }
}

extension ScenarioResult {
    /// Whether the clock decides this result: it is evidence only if the machine gave the program its CPUs.
    ///
    /// A wrong function, owner, cause or mode, a lost report and a crash are wrong at any speed.
    package var isDecidedByTheClock: Bool {
        switch self {
        case .wrongDuration, .wrongSplit, .falseAlarm, .suppressed: true
        case .ok, .missed, .wrongKind, .wrongLoop, .wrongMode, .wrongCallout, .wrongFunction, .wrongCause, .wrongOwner,
            .wrongAdvice, .incompleteStack, .notCounted, .notAvailable, .inconclusive, .noResult:
            false
        }
    }

    /// Whether the scenario runs again.
    ///
    /// An inconclusive run has judged nothing, so a repetition excuses nothing.
    fileprivate func mayRunAgain(isDisturbed: Bool) -> Bool {
        self == .inconclusive || isDecidedByTheClock && isDisturbed
    }
}
