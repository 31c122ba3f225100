import LinuxSupport

/// The rule for running a scenario again.
///
/// The demo, the soak and the rounds all follow it.
///
/// The host of a virtual machine can take its CPUs away (steal, proc_stat(5)). A result that the clock decides is then no
/// evidence about StallWatch, so the scenario runs again. Each repetition is printed and counted. Every other result
/// stands, whatever the host does.
struct RetryPolicy: Sendable {
    /// The number of times that a scenario runs at most.
    ///
    /// The last attempt stands.
    static let maximumAttempts = 5

    /// Starts to watch the host.
    ///
    /// The result says whether the host has since taken more than a disturbing share.
    var watchHost: @Sendable () -> @Sendable () -> Bool = {
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
    func settle(
        _ attempt: () async throws(DemoFailure) -> Outcome, onRetry: (Outcome) throws(DemoFailure) -> Void
    ) async throws(DemoFailure) -> Outcome {
        for retries in 0..<Self.maximumAttempts - 1 {
            let isDisturbed = watchHost()
            var outcome = try await attempt()
            outcome.retries = retries
            guard outcome.result.mayRunAgain(isDisturbed: isDisturbed()) else { return outcome }
            try onRetry(outcome)
        }
        var last = try await attempt()
        last.retries = Self.maximumAttempts - 1
        return last
    }
}

extension ScenarioResult {
    /// Whether the clock decides this result: it is evidence only if the machine gave the program its CPUs.
    ///
    /// A wrong function, owner, cause or mode, a lost report and a crash are wrong at any speed.
    var isDecidedByTheClock: Bool {
        switch self {
        case .wrongDuration, .wrongSplit, .falseAlarm, .suppressed: true
        case .ok, .missed, .wrongKind, .wrongLoop, .wrongMode, .wrongCallout, .wrongFunction, .wrongCause, .wrongOwner,
            .notCounted, .notAvailable, .inconclusive, .noResult:
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
