import Foundation
import StallWatch
import TestSupport
import Testing

@testable import stallwatch_demo

@Suite struct RecordedOutcomeTests {
    /// An outcome of the first scenario, with the report in ``reportLiteral``.
    private func outcome(reports: [ReportedStall]) -> Outcome {
        Outcome(
            scenario: Scenario.all[0].name, expected: Scenario.all[0].expected, thresholdMilliseconds: 250,
            injected: [812.4, 3], reports: reports, toleratedCause: Scenario.all[0].toleratedCause,
            notCounted: .suspended, suppressedStalls: 2, runnableMilliseconds: 1.5, waitedMilliseconds: 0.5,
            unavailable: "no library", retries: 1
        )
    }

    @Test func summaryGivesTheSameOutcome() throws {
        let directory = try TemporaryDirectory()
        _ = try directory.write("a.json", Array(reportLiteral.utf8))
        let original = outcome(reports: [try ReportedStall.read("a.json", in: directory.path)])
        let summary = try directory.write("summary.json", try Summary.json([original]))
        let recorded = try RecordedOutcome.read(summary)
        #expect(recorded.map(\.reports) == [[directory.path + "/a.json"]])
        #expect(try recorded.map { try $0.outcome(reportsIn: directory.path) } == [original])
    }

    /// Reports that were symbolicated meanwhile have another culprit.
    @Test func reportsAreReadFromTheGivenDirectory() throws {
        let directory = try TemporaryDirectory()
        let changed = reportLiteral.replacingOccurrences(of: "\"line\": 88", with: "\"line\": 89")
        _ = try directory.write("a.json", Array(changed.utf8))
        let recorded = RecordedOutcome(
            outcome(reports: [ReportedStall(file: "/elsewhere/a.json", loop: "main", milliseconds: 1)]))
        #expect(try recorded.outcome(reportsIn: directory.path).reports.map(\.line) == [89])
    }

    @Test func missingAndDamagedFilesAreFailures() throws {
        let directory = try TemporaryDirectory()
        #expect(throws: DemoFailure.self) { try RecordedOutcome.read(directory.path + "/none.json") }
        let text = try directory.write("text.json", Array("[{}]".utf8))
        #expect(throws: DemoFailure.self) { try RecordedOutcome.read(text) }
        let recorded = RecordedOutcome(outcome(reports: [ReportedStall(file: "b.json", loop: "main", milliseconds: 1)]))
        #expect(throws: DemoFailure.self) { try recorded.outcome(reportsIn: directory.path) }
        var unknown = recorded
        unknown.scenario = "nonsense"
        #expect(throws: DemoFailure.self) { try unknown.outcome(reportsIn: directory.path) }
    }
}
