import Testing

@testable import stallwatch_demo

@Suite struct VerdictTests {
    private let expected = Scenario.ExpectedReport(function: "stall()")

    private func outcome(
        _ expected: Scenario.ExpectedReport?, injected: Double? = 500, _ reports: ReportedStall...
    ) -> Outcome {
        Outcome(
            scenario: "test", expected: expected, thresholdMilliseconds: 250, injectedMilliseconds: injected,
            reports: reports
        )
    }

    private func report(
        _ milliseconds: Double = 500, loop: String = "main", function: String? = "stall()"
    ) -> ReportedStall {
        ReportedStall(file: "stalls/\(milliseconds).json", loop: loop, milliseconds: milliseconds, function: function)
    }

    @Test func theRightReportIsOk() {
        #expect(outcome(expected, report()).verdict == .ok)
    }

    @Test func noReportOfAStallIsMissed() {
        #expect(outcome(expected).verdict == .missed)
        #expect(outcome(expected).own == nil)
    }

    @Test func aReportOfAnotherLoopIsMissed() {
        let outcome = outcome(expected, report(loop: "worker"))
        #expect(outcome.verdict == .missed)
        #expect(outcome.own == nil)
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

    @Test func theNamesAreThoseOfTheSummary() {
        #expect(
            Verdict.allCases.map(\.rawValue) == ["ok", "missed", "wrong-function", "wrong-duration", "false-alarm"]
        )
    }
}
