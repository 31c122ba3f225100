import LinuxSupport
import TextOutput

struct Progress: Sendable {
    let isSilent: Bool
    let total: Int

    func finish(_ outcome: Outcome, _ index: Int) throws(ScenariosFailure) {
        try write(Self.describe(outcome), index)
    }

    func repeats(_ outcome: Outcome, _ index: Int) throws(ScenariosFailure) {
        try write(Self.describe(outcome) + "; again, because the CPUs were taken away", index)
    }

    private func write(_ text: String, _ index: Int) throws(ScenariosFailure) {
        guard !isSilent else { return }
        let all = String(total)
        try StandardOutput.write("[" + String(index + 1).padded(to: all.count, .right) + "/" + all + "] " + text + "\n")
    }

    static func describe(_ outcome: Outcome) -> String {
        var text = "\(outcome.scenario): \(outcome.result.rawValue)"
        if let reason = outcome.unavailable { return text + ", " + reason }
        if let injected = outcome.injectedMilliseconds { text += ", injected \(injected.oneDecimal) ms" }
        guard let own = outcome.own else { return text + ", no report" }
        return text + ", reported \(own.milliseconds.oneDecimal) ms in \(own.function ?? "no function")"
    }
}

/// The rule for running a scenario again.
///
/// The program, the soak and the rounds all follow it.
///
/// The host of a virtual machine can take its CPUs away (steal, proc_stat(5)). A result that the clock decides is then no
/// evidence about StallWatch, so the scenario runs again. Each repetition is printed and counted. Every other result
/// stands, whatever the host does.
struct RetryPolicy: Sendable {
    /// The number of times that a scenario runs at most; the last attempt stands.
    static let maximumAttempts = 5

    /// Starts to watch the host; the result says whether the host has since taken more than a disturbing share.
    var watchHost: @Sendable () -> @Sendable () -> Bool = {
        let steal = CPUSteal()
        return { steal.isDisturbing }
    }

    /// Runs a scenario until its result stands, and calls `onRetry` with each that does not; returns their number, too.
    func settle(
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
    /// Whether the clock decides this result: it is evidence only if the machine gave the program its CPUs; a wrong
    /// function, owner, cause or mode, a lost report and a crash are wrong at any speed.
    var isDecidedByTheClock: Bool {
        switch self {
        case .wrongDuration, .wrongSplit, .falseAlarm, .suppressed: true
        case .ok, .missed, .wrongKind, .wrongLoop, .wrongMode, .wrongCallout, .wrongFunction, .wrongCause, .wrongOwner,
            .wrongAdvice, .wrongVictims, .incompleteStack, .notCounted, .notAvailable, .inconclusive, .noResult:
            false
        }
    }

    /// Whether the scenario runs again; an inconclusive run has judged nothing, so a repetition excuses nothing.
    fileprivate func mayRunAgain(isDisturbed: Bool) -> Bool {
        self == .inconclusive || isDecidedByTheClock && isDisturbed
    }
}
