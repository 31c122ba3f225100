import StallWatch
import Testing

@testable import stallwatch_demo

@Suite struct SummaryTableTests {
    @Test func columnsAreAligned() {
        let stall = Outcome(
            scenario: "spin", expected: .init(function: "spin()"), thresholdMilliseconds: 250,
            injected: [1750.06],
            reports: [
                ReportedStall(
                    file: "stalls/a.json", loop: "main", milliseconds: 1750.2, function: "spin()", cause: "cpu"
                )
            ]
        )
        let missed = Outcome(
            scenario: "sleep-long", expected: .init(function: "sleep()"), thresholdMilliseconds: 250,
            injected: [500], reports: []
        )
        let quiet = Outcome(
            scenario: "idle", expected: nil, thresholdMilliseconds: 250, injected: [], reports: []
        )
        #expect(
            SummaryTable([stall, missed, quiet]).text == """

                scenario    injected ms  reported ms  blamed function  cause  result  file
                spin             1750.1       1750.2  spin()           cpu    ok      stalls/a.json
                sleep-long        500.0            -  -                -      missed  -
                idle                  -            -  -                -      ok      -

                2 of 3 ok, 1 failed, 0 not available, 0 inconclusive; 0 run again because the CPUs were taken away
                blamed: 1 of 2 functions, 0 of 2 lines

                """
        )
    }

    @Test func anUnavailableScenarioIsCounted() {
        let outcome = Outcome(
            scenario: "glib", expected: .init(function: "sleep()"), thresholdMilliseconds: 250, injected: [],
            reports: [], unavailable: "there is no library"
        )
        let text = SummaryTable([outcome]).text
        #expect(text.contains("not-available"))
        #expect(text.contains("\n0 of 1 ok, 0 failed, 1 not available, 0 inconclusive; 0 run again"))
    }

    @Test func aReportWithoutAFunctionHasAQuestionMark() {
        let outcome = Outcome(
            scenario: "spin", expected: .init(function: "spin()"), thresholdMilliseconds: 250,
            injected: [500],
            reports: [ReportedStall(file: "a.json", loop: "main", milliseconds: 500, function: nil)]
        )
        #expect(SummaryTable([outcome]).text.contains("500.0  ?                ?      wrong-function  a.json"))
    }

    @Test(arguments: [
        (0.0, "0.0"), (0.04, "0.0"), (0.05, "0.1"), (99.96, "100.0"), (750, "750.0"), (1234.56, "1234.6"),
    ])
    func millisecondsHaveOneDecimal(value: Double, text: String) {
        #expect(value.oneDecimal == text)
    }
}
