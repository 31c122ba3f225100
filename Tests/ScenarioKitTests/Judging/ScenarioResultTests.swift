import StallReports
import StallWatch
import Testing

@testable import ScenarioKit

@Suite struct ScenarioResultTests {
    private let expected = ExpectedReport(callout: .timer, function: "stall()")

    private func outcome(
        _ expected: ExpectedReport?, injected: Double? = 500, _ reports: ReportedStall...
    ) -> Outcome {
        Outcome(
            scenario: "test", expected: expected, thresholdMilliseconds: 250, injected: injected.map { [$0] } ?? [],
            reports: reports
        )
    }

    private func report(
        _ milliseconds: Double = 500, loop: String = "main", function: String? = "stall()"
    ) -> ReportedStall {
        ReportedStall(
            file: "stalls/\(milliseconds).json", loop: loop, callout: .timer, milliseconds: milliseconds,
            function: function
        )
    }

    /// Judges the right report after `change`.
    private func result(_ expected: ExpectedReport, _ change: (inout ReportedStall) -> Void) -> ScenarioResult {
        var changed = report()
        change(&changed)
        return outcome(expected, changed).result
    }

    @Test func eachResultHasItsReason() {
        #expect(outcome(expected, report()).result == .ok)
        #expect(outcome(nil, injected: nil).result == .ok)
        #expect(outcome(expected).result == .missed)
        #expect(outcome(expected, report(loop: "worker")).result == .wrongLoop)
        #expect(outcome(expected, report(function: nil)).result == .wrongFunction)
        // The tolerance is 2 %.
        #expect(outcome(expected, report(510)).result == .ok)
        #expect(outcome(expected, report(511)).result == .wrongDuration)
        #expect(outcome(expected, report(), report(260)).result == .falseAlarm)
        #expect(outcome(nil, injected: nil, report(1)).result == .falseAlarm)
        #expect(result(expected) { ($0.samples, $0.incompleteSamples) = (9, 1) } == .incompleteStack)
        #expect(result(expected) { ($0.samples, $0.incompleteSamples) = (10, 1) } == .ok)
        var changed = outcome(expected)
        changed.suppressedStalls = 1
        #expect(changed.result == .suppressed)
        changed.notCounted = .processStopped
        #expect(changed.result == .notCounted)
        changed.unavailable = "there is no library"
        #expect(changed.result == .notAvailable)
        changed.hasFailed = true
        #expect(changed.result == .noResult)
    }

    @Test func eachExpectedStackIsThatOfAReport() {
        func result(_ stack: [String]) -> ScenarioResult {
            self.result(ExpectedReport(callout: .timer, stacks: [stack])) {
                $0.functions = ["usleep", "stall()", "?", "main"]
            }
        }
        #expect(result(["stall()", "main"]) == .ok)
        #expect(result(["usleep"]) == .wrongFunction)
        #expect(result(["stall()", "main", "?"]) == .wrongFunction)
    }

    @Test func eachWrongPartOfAReportHasAResult() {
        #expect(result(expected) { $0.kind = .saturation } == .wrongKind)
        #expect(result(expected) { $0.loopKind = .probe } == .wrongLoop)
        #expect(result(expected) { $0.nesting = 1 } == .wrongLoop)
        #expect(result(expected) { $0.callout = nil } == .wrongCallout)
        #expect(result(expected) { $0.callout = .source0 } == .wrongCallout)
        var inMode = expected
        inMode.mode = "tracking"
        var advised = expected
        advised.advice = "sleep"
        #expect(result(advised) { _ in } == .wrongAdvice)
        #expect(result(advised) { $0.advice = "sleep" } == .ok)
        #expect(result(inMode) { $0.mode = nil } == .wrongMode)
        #expect(result(inMode) { $0.mode = "tracking" } == .ok)
    }

    /// The other loop's stall has to be reported, once.
    @Test func aStallBesidesIsJudged() {
        var both = expected
        both.besides = "worker"
        let other = report(400, loop: "worker")
        #expect(outcome(both, report(), other).result == .ok)
        #expect(outcome(both, report()).result == .missed)
        #expect(outcome(both, report(), other, other).result == .falseAlarm)
    }

    /// Judges a stall of 500 ms of the main loop, whose thread was ready to run without a CPU for `runnable` milliseconds.
    private func result(expects: String, says: String, runnable: Double) -> ScenarioResult {
        var judged = expected
        judged.cause = expects
        var said = report()
        said.cause = says
        var outcome = outcome(judged, said)
        outcome.runnableMilliseconds = runnable
        return outcome.result
    }

    @Test(arguments: [
        ("io", "cpuContention", 250.0, ScenarioResult.inconclusive), ("io", "cpuContention", 249, .wrongCause),
        ("io", "cpu", 400, .wrongCause), ("io", "io", 400, .ok), ("throttled", "cpuContention", 400, .wrongCause),
        ("cpuContention", "cpuContention", 400, .ok), ("cpuContention", "io", 400, .wrongCause),
    ])
    func aStarvedThreadIsNotJudged(expects: String, says: String, runnable: Double, expected: ScenarioResult) {
        #expect(result(expects: expects, says: says, runnable: runnable) == expected)
    }

    @Test func aShortStallThatTookLongerMayBeReported() {
        #expect(outcome(nil, injected: 300, report(301)).result == .ok)
        #expect(outcome(nil, injected: 248, report(251)).result == .ok)
        #expect(outcome(nil, injected: 244, report(248)).result == .falseAlarm)
        #expect(outcome(nil, injected: 300, report(320)).result == .falseAlarm)
        #expect(outcome(nil, injected: 300, report(301), report(301)).result == .falseAlarm)
        #expect(outcome(nil, injected: 300).result == .missed)
        #expect(outcome(nil, injected: 254).result == .ok)
    }

    @Test func theCauseAndTheOwnerAreJudged() {
        var judged = expected
        judged.cause = "lock"
        #expect(result(judged) { $0.cause = "sleep" } == .wrongCause)
        #expect(result(judged) { $0.cause = nil } == .wrongCause)
        #expect(result(judged) { ($0.cause, $0.owner) = ("lock", "holder") } == .wrongOwner)
        judged.owner = "holder"
        #expect(result(judged) { $0.cause = "lock" } == .wrongOwner)
        #expect(result(judged) { ($0.cause, $0.owner) = ("lock", "another") } == .wrongOwner)
        #expect(result(judged) { ($0.cause, $0.owner) = ("lock", "holder") } == .ok)
    }

    @Test func `the process that is waited for is judged`() {
        var judged = expected.waiting(for: .holder, in: "clock_nanosleep")
        judged.cause = "lock"
        func result(_ process: Int32?, _ role: StallReport.PeerRole? = .holder, does: String? = "clock_nanosleep")
            -> ScenarioResult
        {
            var changed = report()
            (changed.cause, changed.peer, changed.peerProcess, changed.peerDoes) = ("lock", role, process, does)
            var outcome = outcome(judged, changed)
            outcome.peer = 812
            return outcome.result
        }
        #expect(result(812) == .ok)
        #expect(result(813) == .wrongOwner)
        #expect(result(nil) == .wrongOwner)
        #expect(result(812, .writer) == .wrongOwner)
        #expect(result(812, nil) == .wrongOwner)
        #expect(result(812, does: "futex") == .wrongOwner)
    }

    @Test func thePartsOfTheTimeMustAddUp() {
        func result(onCPU: Double, blocked: Double) -> ScenarioResult {
            self.result(expected) { $0.split = .init(onCPU: onCPU, runQueue: 0, blocked: blocked, uncertainty: 50) }
        }
        // The report has 500 ms, so the tolerance is 2 ms and 2 % of that.
        #expect(result(onCPU: 111, blocked: 400) == .ok)
        #expect(result(onCPU: 113, blocked: 400) == .wrongSplit)
        #expect(result(onCPU: 100, blocked: 387.5) == .wrongSplit)
    }

    @Test func aReportOfAToleratedCauseIsOk() {
        var delayed = report()
        delayed.cause = "cpuContention"
        var outcome = outcome(nil, injected: nil, delayed)
        #expect(outcome.result == .falseAlarm)
        outcome.toleratedCause = "cpuContention"
        #expect(outcome.result == .ok)
        outcome.reports.append(report())
        #expect(outcome.result == .falseAlarm)
        outcome.reports = []
        #expect(outcome.result == .ok)
    }
}
