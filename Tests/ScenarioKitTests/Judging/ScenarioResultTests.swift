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

    @Test func theRightReportIsOk() {
        #expect(outcome(expected, report()).result == .ok)
    }

    @Test func aStallWithoutAReportIsMissed() {
        #expect(outcome(expected).result == .missed)
        #expect(outcome(expected).own == nil)
    }

    @Test func aReportOfAnotherLoopIsWrong() {
        let outcome = outcome(expected, report(loop: "worker"))
        #expect(outcome.result == .wrongLoop)
        #expect(outcome.own == nil)
    }

    /// Judges the right report after `change`.
    private func result(_ expected: ExpectedReport, _ change: (inout ReportedStall) -> Void) -> ScenarioResult {
        var changed = report()
        change(&changed)
        return outcome(expected, changed).result
    }

    @Test func `each expected stack is that of a report`() {
        func result(_ stacks: [[String]]) -> ScenarioResult {
            var reports = [report(500, function: "a()"), report(500, function: "b()")]
            reports[0].functions = ["usleep", "a()", "?", "c()", "main"]
            reports[1].functions = ["usleep", "b()", "d()", "main"]
            var outcome = outcome(ExpectedReport(callout: .timer, stacks: stacks), injected: nil)
            (outcome.injected, outcome.reports) = ([500, 500], reports)
            return outcome.result
        }
        #expect(result([["b()", "d()"], ["a()", "c()"]]) == .ok)
        for wrong in [["c()"], ["a()", "d()"], ["a()", "main", "c()"]] {
            #expect(result([["b()"], wrong]) == .wrongFunction)
        }
        #expect(result([["a()"], ["b()"], ["b()", "main"]]) == .missed)
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

    @Test func aCallIsJudgedWithoutACause() {
        let reading = ExpectedReport(callout: .timer, function: "stall()", call: "read(/")
        #expect(result(reading) { $0.call = "read(/data/a)" } == .ok)
        #expect(result(reading) { _ in } == .wrongCause)
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

    @Test func aChildThatFailedGivesNoResult() {
        var failed = outcome(expected, report())
        failed.hasFailed = true
        #expect(failed.result == .noResult)
    }

    @Test func anUnexpectedFieldIsNotJudged() {
        let anything = ExpectedReport(loopKind: nil)
        #expect(result(anything) { $0.loopKind = .probe } == .ok)
        #expect(result(anything) { $0.mode = "any" } == .ok)
        #expect(result(anything) { $0.function = nil } == .ok)
    }

    @Test func aBurstHasDifferentSamples() {
        var burst = expected
        burst.differingSamples = true
        #expect(result(burst) { $0.distinctStacks = 1 } == .wrongKind)
        #expect(result(burst) { $0.distinctStacks = 2 } == .ok)
    }

    @Test func stacksAreComplete() {
        #expect(result(expected) { $0.incompleteSamples = 1 } == .incompleteStack)
        #expect(result(expected) { ($0.samples, $0.incompleteSamples) = (9, 1) } == .incompleteStack)
        #expect(result(expected) { ($0.samples, $0.incompleteSamples) = (10, 1) } == .ok)
        #expect(result(expected) { ($0.samples, $0.incompleteSamples) = (25, 23) } == .incompleteStack)
        #expect(result(expected.perhapsIncomplete()) { $0.incompleteSamples = 1 } == .ok)
    }

    @Test(arguments: [
        (490.1, ScenarioResult.wrongDuration), (490.3, .ok), (550, .ok), (610, .ok), (612.3, .wrongDuration),
    ])
    func theUncertaintyOfTheBeginIsTolerated(injected: Double, wanted: ScenarioResult) {
        var late = report(500)
        late.startUncertainty = 100
        #expect(outcome(expected, injected: injected, late).result == wanted)
    }

    @Test(
        arguments: [(0, ScenarioResult.wrongDuration), (3, .wrongDuration), (6, .ok), (60, .ok)]
            as [(Double, ScenarioResult)])
    func theWaitForACPUIsTolerated(waited: Double, wanted: ScenarioResult) {
        // 15 ms longer than injected, of which 10 ms are 2 %.
        var outcome = outcome(expected, injected: 500, report(515.5))
        outcome.waitedMilliseconds = waited
        #expect(outcome.result == wanted)
        outcome.reports = [report(485)]
        #expect(outcome.result == .wrongDuration, "a wait does not make a report shorter")
    }

    @Test func severalStallsNeedAReportEach() {
        func outcome(_ injected: [Double], _ reports: ReportedStall...) -> Outcome {
            var two = expected
            two.count = 2
            return Outcome(
                scenario: "test", expected: two, thresholdMilliseconds: 250, injected: injected, reports: reports
            )
        }
        #expect(outcome([300, 500], report(501), report(301)).result == .ok)
        #expect(outcome([300, 500], report(501)).result == .missed)
        #expect(outcome([300, 500], report(501), report(310)).result == .wrongDuration)
        #expect(outcome([500], report(501), report(501)).result == .wrongDuration)
        #expect(outcome([300, 500], report(501), report(301), report(260)).result == .falseAlarm)
        #expect(outcome([300, 500], report(501), report(301, function: "other()")).result == .wrongFunction)
    }

    @Test func anUnavailableScenarioIsNotOk() {
        var outcome = outcome(nil, injected: nil)
        outcome.unavailable = "there is no library"
        #expect(outcome.result == .notAvailable)
    }

    /// Judges a stall of 500 ms of the main loop, whose thread was ready to run without a CPU for `runnable` milliseconds.
    private func result(
        expects: String, says: String, runnable: Double, function: String = "stall()"
    ) -> ScenarioResult {
        var judged = expected
        judged.cause = expects
        var said = report(function: function)
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

    @Test func aWrongFunctionOfAStarvedThreadIsWrong() {
        #expect(result(expects: "io", says: "cpuContention", runnable: 400, function: "other()") == .wrongFunction)
    }

    @Test func aSuppressedStallIsNotMissed() {
        var outcome = outcome(expected)
        outcome.suppressedStalls = 1
        #expect(outcome.result == .suppressed)
    }

    @Test func aSuppressionThatIsNotCountedIsWrong() {
        var outcome = outcome(nil, injected: nil)
        outcome.notCounted = .processStopped
        #expect(outcome.result == .notCounted)
    }

    @Test(arguments: ["other()", nil]) func anotherFunctionIsWrong(function: String?) {
        #expect(outcome(expected, report(function: function)).result == .wrongFunction)
    }

    @Test(arguments: [
        // Up to 250 ms the tolerance of 5 ms is the larger one, and 2 % above that.
        (100.0, 95.0), (100, 105), (250, 255), (1000, 980), (1000, 1020),
    ])
    func aDurationThatIsCloseIsOk(injected: Double, reported: Double) {
        #expect(outcome(expected, injected: injected, report(reported)).result == .ok)
    }

    @Test(arguments: [(100.0, 94.9), (100, 105.1), (1000, 979.9), (1000, 1020.1), (1000, 0)])
    func aDurationThatIsNotCloseIsWrong(injected: Double, reported: Double) {
        #expect(outcome(expected, injected: injected, report(reported)).result == .wrongDuration)
    }

    @Test func `a stall that was not injected has a wrong duration`() {
        #expect(outcome(expected, injected: nil, report()).result == .wrongDuration)
    }

    @Test func aSecondReportIsAFalseAlarm() {
        let outcome = outcome(expected, report(260), report(500), report(900, loop: "worker"))
        #expect(outcome.result == .falseAlarm)
        #expect(outcome.own == report(500))
    }

    @Test func noStallAndNoReportIsOk() {
        #expect(outcome(nil, injected: nil).result == .ok)
        #expect(outcome(nil, injected: 150).result == .ok)
    }

    @Test(arguments: ["main", "worker"]) func aReportWithoutAStallIsAFalseAlarm(loop: String) {
        for injected in [nil, 150.0] {
            for reported in [1.0, 250, 500] {
                let outcome = outcome(nil, injected: injected, report(reported, loop: loop))
                #expect(outcome.result == .falseAlarm)
                #expect(outcome.own == report(reported, loop: loop))
            }
        }
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

    @Test func theActivityOfTheOwnerAndTheCallAreJudged() {
        var judged = expected
        (judged.cause, judged.owner, judged.ownerDoes, judged.lock) = ("lock", "holder", "write", .pthreadMutex)
        func result(_ does: String?, _ lock: StallReport.LockKind?) -> ScenarioResult {
            self.result(judged) {
                ($0.cause, $0.owner, $0.ownerDoes, $0.lock) = ("lock", "holder", does, lock)
            }
        }
        #expect(result("write", .pthreadMutex) == .ok)
        #expect(result("running", .pthreadMutex) == .wrongOwner)
        #expect(result(nil, .pthreadMutex) == .wrongOwner)
        #expect(result("write", .swiftMutex) == .wrongCause)
        #expect(result("write", nil) == .wrongCause)

        var call = expected
        (call.cause, call.call) = ("io", "connect(127.0.0.1:")
        #expect(self.result(call) { ($0.cause, $0.call) = ("io", "connect(127.0.0.1:80)") } == .ok)
        #expect(self.result(call) { ($0.cause, $0.call) = ("io", "connect()") } == .wrongCause)
        #expect(self.result(call) { ($0.cause, $0.call) = ("io", nil) } == .wrongCause)
    }

    /// The report has 500 ms, so the tolerance is 2 ms and 2 % of that.
    @Test(arguments: [
        (100.0, 0.0, 400.0, ScenarioResult.ok), (100, 11, 400, .ok), (100, 13, 400, .wrongSplit), (100, 0, 388.5, .ok),
        (100, 0, 387.5, .wrongSplit), (0, 0, 0, .wrongSplit),
    ])
    func thePartsOfTheTimeMustAddUp(onCPU: Double, runQueue: Double, blocked: Double, wanted: ScenarioResult) {
        let split = ReportedStall.Split(onCPU: onCPU, runQueue: runQueue, blocked: blocked, uncertainty: 50)
        #expect(self.result(expected) { $0.split = split } == wanted)
    }

    @Test func anExpectedTimeOnCPUIsJudged() {
        // Of a threshold of 250 ms.
        var judged = expected
        judged.onCPU = 1.5
        func result(_ onCPU: Double, uncertainty: Double = 0) -> ScenarioResult {
            self.result(judged) {
                $0.split = .init(onCPU: onCPU, runQueue: 0, blocked: 500 - onCPU, uncertainty: uncertainty)
            }
        }
        #expect(result(375) == .ok)
        #expect(result(363.5) == .ok)
        #expect(result(362.5) == .wrongSplit)
        #expect(result(388) == .wrongSplit)
        #expect(result(388, uncertainty: 2) == .ok)
        #expect(self.result(judged) { $0.split = nil } == .wrongSplit)
    }

    @Test func theNamesMatchTheSummary() {
        #expect(
            ScenarioResult.allCases.map(\.rawValue) == [
                "ok", "missed", "wrong-kind", "wrong-loop", "wrong-mode", "wrong-callout", "wrong-function",
                "wrong-duration", "wrong-cause", "wrong-owner", "wrong-advice", "wrong-split", "incomplete-stack",
                "false-alarm",
                "not-counted", "suppressed", "inconclusive", "not-available", "no-result",
            ]
        )
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
