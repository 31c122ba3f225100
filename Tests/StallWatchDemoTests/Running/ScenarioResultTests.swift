import StallReports
import StallWatch
import Testing

@testable import stallwatch_demo

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
        #expect(outcome(expected, report()).verdict == .ok)
    }

    @Test func noReportOfAStallIsMissed() {
        #expect(outcome(expected).verdict == .missed)
        #expect(outcome(expected).own == nil)
    }

    @Test func aReportOfAnotherLoopIsWrong() {
        let outcome = outcome(expected, report(loop: "worker"))
        #expect(outcome.verdict == .wrongLoop)
        #expect(outcome.own == nil)
    }

    /// What `change` made of the right report, judged.
    private func verdict(_ expected: ExpectedReport, _ change: (inout ReportedStall) -> Void) -> ScenarioResult {
        var changed = report()
        change(&changed)
        return outcome(expected, changed).verdict
    }

    @Test func whatTheReportHasWrongIsNamed() {
        #expect(verdict(expected) { $0.kind = .saturation } == .wrongKind)
        #expect(verdict(expected) { $0.loopKind = .probe } == .wrongLoop)
        #expect(verdict(expected) { $0.nesting = 1 } == .wrongLoop)
        #expect(verdict(expected) { $0.callout = nil } == .wrongCallout)
        #expect(verdict(expected) { $0.callout = .source0 } == .wrongCallout)
        var inMode = expected
        inMode.mode = "tracking"
        #expect(verdict(inMode) { $0.mode = nil } == .wrongMode)
        #expect(verdict(inMode) { $0.mode = "tracking" } == .ok)
    }

    @Test func whatDoesNotApplyIsNotJudged() {
        let anything = ExpectedReport(loopKind: nil)
        #expect(verdict(anything) { $0.loopKind = .probe } == .ok)
        #expect(verdict(anything) { $0.mode = "any" } == .ok)
        #expect(verdict(anything) { $0.function = nil } == .ok)
    }

    @Test func manySmallPiecesAreToldByTheirSamples() {
        var burst = expected
        burst.differingSamples = true
        #expect(verdict(burst) { $0.distinctStacks = 1 } == .wrongKind)
        #expect(verdict(burst) { $0.distinctStacks = 2 } == .ok)
    }

    @Test(arguments: [
        (490.1, ScenarioResult.wrongDuration), (490.3, .ok), (550, .ok), (610, .ok), (612.3, .wrongDuration),
    ])
    func whatIsUncertainAboutTheBeginningIsGranted(injected: Double, verdict: ScenarioResult) {
        var late = report(500)
        late.startUncertainty = 100
        #expect(outcome(expected, injected: injected, late).verdict == verdict)
    }

    @Test(
        arguments: [(0, ScenarioResult.wrongDuration), (3, .wrongDuration), (6, .ok), (60, .ok)]
            as [(Double, ScenarioResult)])
    func whatTheThreadWaitedForACPUIsGranted(waited: Double, verdict: ScenarioResult) {
        // 15 ms longer than injected, of which 10 ms are 2 %.
        var outcome = outcome(expected, injected: 500, report(515.5))
        outcome.waitedMilliseconds = waited
        #expect(outcome.verdict == verdict)
        outcome.reports = [report(485)]
        #expect(outcome.verdict == .wrongDuration, "a report that is too short is wrong all the same")
    }

    @Test func severalStallsNeedAReportEach() {
        func outcome(_ injected: [Double], _ reports: ReportedStall...) -> Outcome {
            var two = expected
            two.count = 2
            return Outcome(
                scenario: "test", expected: two, thresholdMilliseconds: 250, injected: injected, reports: reports
            )
        }
        #expect(outcome([300, 500], report(501), report(301)).verdict == .ok)
        #expect(outcome([300, 500], report(501)).verdict == .missed)
        #expect(outcome([300, 500], report(501), report(310)).verdict == .wrongDuration)
        #expect(outcome([500], report(501), report(501)).verdict == .wrongDuration)
        #expect(outcome([300, 500], report(501), report(301), report(260)).verdict == .falseAlarm)
        #expect(outcome([300, 500], report(501), report(301, function: "other()")).verdict == .wrongFunction)
    }

    @Test func whatCouldNotRunIsNeverOk() {
        var outcome = outcome(nil, injected: nil)
        outcome.unavailable = "there is no library"
        #expect(outcome.verdict == .notAvailable)
    }

    /// The stall took 500 ms.
    @Test(arguments: [
        ("io", "cpuContention", 250.0, ScenarioResult.notAvailable), ("io", "cpuContention", 249, .wrongCause),
        ("io", "cpu", 400, .wrongCause), ("io", "io", 400, .ok), ("throttled", "cpuContention", 400, .wrongCause),
        ("cpuContention", "cpuContention", 400, .ok), ("cpuContention", "io", 400, .wrongCause),
    ])
    func aThreadThatOthersStarvedIsNotJudged(expects: String, says: String, ready: Double, verdict: ScenarioResult) {
        var judged = expected
        judged.cause = expects
        var said = report()
        said.cause = says
        var outcome = outcome(judged, said)
        outcome.forgiveStarvation(of: ready)
        #expect(outcome.verdict == verdict)
    }

    @Test func whatHadToBeHeldBackMustBeCounted() {
        var outcome = outcome(nil, injected: nil)
        outcome.notCounted = .processStopped
        #expect(outcome.verdict == .notCounted)
    }

    @Test(arguments: ["other()", nil]) func anotherFunctionIsWrong(function: String?) {
        #expect(outcome(expected, report(function: function)).verdict == .wrongFunction)
    }

    @Test(arguments: [
        // Up to 250 ms, 5 ms are the larger tolerance; from there on, 2 %.
        (100.0, 95.0), (100, 105), (250, 255), (1000, 980), (1000, 1020),
    ])
    func aDurationThatIsCloseIsOk(injected: Double, reported: Double) {
        #expect(outcome(expected, injected: injected, report(reported)).verdict == .ok)
    }

    @Test(arguments: [(100.0, 94.9), (100, 105.1), (1000, 979.9), (1000, 1020.1), (1000, 0)])
    func aDurationThatIsNotCloseIsWrong(injected: Double, reported: Double) {
        #expect(outcome(expected, injected: injected, report(reported)).verdict == .wrongDuration)
    }

    @Test func aStallThatWasNotInjectedHasAWrongDuration() {
        #expect(outcome(expected, injected: nil, report()).verdict == .wrongDuration)
    }

    @Test func aSecondReportIsAFalseAlarmAndTheLongestIsTheScenarios() {
        let outcome = outcome(expected, report(260), report(500), report(900, loop: "worker"))
        #expect(outcome.verdict == .falseAlarm)
        #expect(outcome.own == report(500))
    }

    @Test func noReportOfNoStallIsOk() {
        #expect(outcome(nil, injected: nil).verdict == .ok)
        #expect(outcome(nil, injected: 150).verdict == .ok)
    }

    @Test(arguments: ["main", "worker"]) func anyReportOfNoStallIsAFalseAlarm(loop: String) {
        for injected in [nil, 150.0] {
            for reported in [1.0, 250, 500] {
                let outcome = outcome(nil, injected: injected, report(reported, loop: loop))
                #expect(outcome.verdict == .falseAlarm)
                #expect(outcome.own == report(reported, loop: loop))
            }
        }
    }

    @Test func aShortStallThatBecameALongOneIsRightlyReported() {
        #expect(outcome(nil, injected: 300, report(301)).verdict == .ok)
        #expect(outcome(nil, injected: 248, report(251)).verdict == .ok)
        #expect(outcome(nil, injected: 244, report(248)).verdict == .falseAlarm)
        #expect(outcome(nil, injected: 300, report(320)).verdict == .falseAlarm)
        #expect(outcome(nil, injected: 300, report(301), report(301)).verdict == .falseAlarm)
        #expect(outcome(nil, injected: 300).verdict == .missed)
        #expect(outcome(nil, injected: 254).verdict == .ok)
    }

    @Test func theCauseAndTheOwnerAreJudgedWhereTheyAreExpected() {
        var judged = expected
        judged.cause = "lock"
        #expect(verdict(judged) { $0.cause = "sleep" } == .wrongCause)
        #expect(verdict(judged) { $0.cause = nil } == .wrongCause)
        #expect(verdict(judged) { ($0.cause, $0.owner) = ("lock", "holder") } == .wrongOwner)
        judged.owner = "holder"
        #expect(verdict(judged) { $0.cause = "lock" } == .wrongOwner)
        #expect(verdict(judged) { ($0.cause, $0.owner) = ("lock", "another") } == .wrongOwner)
        #expect(verdict(judged) { ($0.cause, $0.owner) = ("lock", "holder") } == .ok)
    }

    @Test func whatTheOwnerDoesAndWhatIsWaitedForIsJudged() {
        var judged = expected
        (judged.cause, judged.owner, judged.ownerDoes, judged.lock) = ("lock", "holder", "write", .pthreadMutex)
        func verdict(_ does: String?, _ lock: StallReport.LockKind?) -> ScenarioResult {
            self.verdict(judged) {
                ($0.cause, $0.owner, $0.ownerDoes, $0.lock) = ("lock", "holder", does, lock)
            }
        }
        #expect(verdict("write", .pthreadMutex) == .ok)
        #expect(verdict("running", .pthreadMutex) == .wrongOwner)
        #expect(verdict(nil, .pthreadMutex) == .wrongOwner)
        #expect(verdict("write", .swiftMutex) == .wrongCause)
        #expect(verdict("write", nil) == .wrongCause)

        var call = expected
        (call.cause, call.call) = ("io", "connect(127.0.0.1:")
        #expect(self.verdict(call) { ($0.cause, $0.call) = ("io", "connect(127.0.0.1:80)") } == .ok)
        #expect(self.verdict(call) { ($0.cause, $0.call) = ("io", "connect()") } == .wrongCause)
        #expect(self.verdict(call) { ($0.cause, $0.call) = ("io", nil) } == .wrongCause)
    }

    /// The report says 500 ms: 2 ms and 2 % of it are granted.
    @Test(arguments: [
        (100.0, 0.0, 400.0, ScenarioResult.ok), (100, 11, 400, .ok), (100, 13, 400, .wrongSplit), (100, 0, 388.5, .ok),
        (100, 0, 387.5, .wrongSplit), (0, 0, 0, .wrongSplit),
    ])
    func thePartsOfTheTimeMustAddUp(onCPU: Double, runQueue: Double, blocked: Double, verdict: ScenarioResult) {
        let split = ReportedStall.Split(onCPU: onCPU, runQueue: runQueue, blocked: blocked, uncertainty: 50)
        #expect(self.verdict(expected) { $0.split = split } == verdict)
    }

    @Test func theTimeOnCPUIsJudgedWhereItIsKnown() {
        // Of a threshold of 250 ms.
        var judged = expected
        judged.onCPU = 1.5
        func verdict(_ onCPU: Double, uncertainty: Double = 0) -> ScenarioResult {
            self.verdict(judged) {
                $0.split = .init(onCPU: onCPU, runQueue: 0, blocked: 500 - onCPU, uncertainty: uncertainty)
            }
        }
        #expect(verdict(375) == .ok)
        #expect(verdict(363.5) == .ok)
        #expect(verdict(362.5) == .wrongSplit)
        #expect(verdict(388) == .wrongSplit)
        #expect(verdict(388, uncertainty: 2) == .ok)
        #expect(self.verdict(judged) { $0.split = nil } == .wrongSplit)
    }

    @Test func theNamesAreThoseOfTheSummary() {
        #expect(
            ScenarioResult.allCases.map(\.rawValue) == [
                "ok", "missed", "wrong-kind", "wrong-loop", "wrong-mode", "wrong-callout", "wrong-function",
                "wrong-duration", "wrong-cause", "wrong-owner", "wrong-split", "false-alarm", "not-counted",
                "not-available",
            ]
        )
    }

    @Test func whatOthersReallyDelayedIsTolerated() {
        var delayed = report()
        delayed.cause = "cpuContention"
        var outcome = outcome(nil, injected: nil, delayed)
        #expect(outcome.verdict == .falseAlarm)
        outcome.toleratedCause = "cpuContention"
        #expect(outcome.verdict == .ok)
        outcome.reports.append(report())
        #expect(outcome.verdict == .falseAlarm)
        outcome.reports = []
        #expect(outcome.verdict == .ok)
    }
}
