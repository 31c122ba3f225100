import ArgumentParser
import StallWatch
import Testing

@testable import stallwatch_demo

@Suite struct RetryPolicyTests {
    /// An outcome of a stall of 500 ms with this result.
    private func outcome(_ result: ScenarioResult) throws -> Outcome {
        var outcome = Outcome(
            scenario: "spin", expected: .init(function: "spin()", cause: "io"), thresholdMilliseconds: 250,
            injected: [500],
            reports: [
                ReportedStall(file: "a.json", loop: "main", milliseconds: 500, function: "spin()", cause: "io")
            ]
        )
        switch result {
        case .ok: break
        case .missed: outcome.reports = []
        case .suppressed: (outcome.reports, outcome.suppressedStalls) = ([], 1)
        case .wrongFunction: outcome.reports[0].function = "other()"
        case .wrongCause: outcome.reports[0].cause = "cpu"
        case .wrongOwner: outcome.reports[0].owner = "other"
        case .wrongDuration: outcome.reports[0].milliseconds = 900
        case .wrongSplit: outcome.reports[0].split = .init(onCPU: 0, runQueue: 0, blocked: 0, uncertainty: 0)
        case .falseAlarm: outcome.reports.append(outcome.reports[0])
        case .inconclusive: (outcome.reports[0].cause, outcome.runnableMilliseconds) = ("cpuContention", 400)
        case .notAvailable: outcome.unavailable = "missing"
        default: Issue.record("no outcome for \(result)")
        }
        try #require(outcome.result == result)
        return outcome
    }

    /// The number of runs of a scenario, of calls of `onRetry`, and of retries in the outcome.
    private struct Counts: Equatable {
        var runs, calls, retries: Int

        static let one = Counts(runs: 1, calls: 0, retries: 0)
        static let all = Counts(
            runs: RetryPolicy.maximumAttempts, calls: RetryPolicy.maximumAttempts - 1,
            retries: RetryPolicy.maximumAttempts - 1
        )
    }

    /// Settles a scenario that always has this result.
    private func counts(_ result: ScenarioResult, isDisturbed: Bool) async throws -> Counts {
        let outcome = try outcome(result)
        var (runs, calls) = (0, 0)
        let last = try await RetryPolicy(watchHost: { { isDisturbed } }).settle(
            { () async throws(DemoFailure) in
                runs += 1
                return outcome
            }, onRetry: { _ in calls += 1 })
        return Counts(runs: runs, calls: calls, retries: last.retries)
    }

    @Test(arguments: [ScenarioResult.wrongDuration, .wrongSplit, .falseAlarm, .suppressed])
    func aResultOfTheClockIsRepeatedOnADisturbedHost(result: ScenarioResult) async throws {
        #expect(try await counts(result, isDisturbed: true) == .all)
        #expect(try await counts(result, isDisturbed: false) == .one)
    }

    @Test(arguments: [ScenarioResult.ok, .missed, .wrongFunction, .wrongCause, .wrongOwner, .notAvailable])
    func otherResultsAreNotRepeatedOnADisturbedHost(result: ScenarioResult) async throws {
        #expect(try await counts(result, isDisturbed: true) == .one)
    }

    @Test func anInconclusiveRunIsRepeated() async throws {
        #expect(try await counts(.inconclusive, isDisturbed: false) == .all)
    }

    @Test func theFirstRightOutcomeEndsTheRepetition() async throws {
        let outcomes = try [outcome(.wrongDuration), outcome(.wrongSplit), outcome(.ok), outcome(.missed)]
        var next = outcomes[...]
        let settled = try await RetryPolicy(watchHost: { { true } }).settle(
            { () async throws(DemoFailure) in next.removeFirst() }, onRetry: { _ in })
        #expect(settled.result == .ok)
        #expect(settled.retries == 2)
    }

    @Test func aFailureIsNeverRepeated() async {
        let failure = DemoFailure(.systemError, "the child crashed")
        await #expect(throws: failure) {
            try await RetryPolicy(watchHost: { { true } }).settle(
                { () async throws(DemoFailure) in throw failure }, onRetry: { _ in Issue.record("repeated") })
        }
    }
}

@Suite struct ThresholdTests {
    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("1s", .seconds(1)), ("0.5s", .milliseconds(500)),
        ("7500us", .microseconds(7500)), ("5ms", .milliseconds(5)), ("86400s", .seconds(86_400)),
        ("12.5ms", .microseconds(12_500)),
    ])
    func aNumberAndAUnitAreRead(text: String, duration: Duration) throws {
        let threshold = try Threshold(parsing: text)
        #expect(threshold.duration == duration)
        #expect(threshold.description == text)
    }

    @Test(arguments: [
        "", "250", "ms", "s", "abc", "1 s", " 1s", "1.2.3s", "1m", "1h", "0x10ms", "1e3ms", "infs", "nans", "1,5s",
        "٣s", "--1s",
        "1s1s", "１s",
    ])
    func otherTextIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try Threshold(parsing: text) }
        #expect(error?.message.contains("not a duration") == true)
    }

    @Test(arguments: [
        "0ms", "0s", "-5ms", "-0.5s", "1500us", "4.999ms", "86401s", "99999999999999999999s",
        String(repeating: "9", count: 400) + "s",
    ])
    func aThresholdOutOfRangeIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try Threshold(parsing: text) }
        #expect(error?.message.contains("5ms to 86400s") == true)
    }
}
