import Foundation
import StallWatch
import Testing
import TestSupport

@testable import ScenarioKit

extension Outcome {
    /// Returns the outcome of a scenario that stalls in `function`, at a threshold of 250 ms.
    static func stub(
        _ scenario: String, in function: String?, cause: String? = nil, injected: Double? = 500,
        _ reports: [ReportedStall] = [], unavailable: String? = nil
    ) -> Outcome {
        Outcome(
            scenario: scenario, expected: function.map { ExpectedReport(function: $0, cause: cause) },
            thresholdMilliseconds: 250, injected: injected.map { [$0] } ?? [], reports: reports,
            unavailable: unavailable)
    }
}

@Suite struct SummaryFileTests {
    private let directory = TemporaryDirectory.ofTest()
    private let outcomes = [
        Outcome.stub(
            "spin", in: "spin()", cause: "cpu", injected: 500.0427,
            [.init(file: "stalls/a.json", loop: "main", milliseconds: 500.125, function: "spin()", cause: "cpu")]),
        .stub("idle", in: nil, injected: nil),
    ]

    @Test func anOldSummaryStaysUntilItIsReplaced() throws {
        let path = directory.path + "/summary.json"
        try Data("old".utf8).write(to: URL(filePath: path))
        let file = try SummaryFile(path: path)
        #expect(FileManager.default.contents(atPath: path) == Data("old".utf8))
        try file.write(outcomes)
        #expect(FileManager.default.contents(atPath: path) == Data(try Summary.json(outcomes)))
        #expect(directory.names == ["summary.json"])
    }

    @Test(arguments: ["/dev/null", "/", "/proc/version/summary.json"])
    func aPathThatCannotBeAFileIsRefused(path: String) throws {
        let failure = #expect(throws: ScenariosFailure.self) { try SummaryFile(path: path) }
        #expect(failure?.status == .cannotCreate)
        #expect(failure?.sentence.contains(path) == true)
    }
}

@Suite struct SummaryTableTests {
    @Test func columnsAreAligned() {
        let stall = Outcome.stub(
            "spin", in: "spin()", injected: 1750.06,
            [.init(file: "stalls/a.json", loop: "main", milliseconds: 1750.2, function: "spin()", cause: "cpu")])
        let missed = Outcome.stub("sleep-long", in: "sleep()")
        let quiet = Outcome.stub("idle", in: nil, injected: nil)
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
}
