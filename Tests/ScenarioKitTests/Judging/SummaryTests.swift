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

    @Test func everyKeyIsThereAndMissingValuesAreNull() throws {
        let json = String(decoding: try Summary.json(outcomes), as: UTF8.self)
        #expect(
            json == """
                [
                  {
                    "blamedFunction" : "spin()",
                    "cause" : "cpu",
                    "expectedCause" : "cpu",
                    "expectedFunction" : "spin()",
                    "expectedOwner" : null,
                    "expectsReport" : true,
                    "injectedMilliseconds" : 500.043,
                    "owner" : null,
                    "report" : "stalls/a.json",
                    "reportedMilliseconds" : 500.125,
                    "result" : "ok",
                    "retries" : 0,
                    "run" : {
                      "injected" : [
                        500.0427
                      ],
                      "reports" : [
                        "stalls/a.json"
                      ],
                      "retries" : 0,
                      "runnableMilliseconds" : 0,
                      "scenario" : "spin",
                      "suppressedStalls" : 0,
                      "thresholdMilliseconds" : 250,
                      "waitedMilliseconds" : 0
                    },
                    "scenario" : "spin"
                  },
                  {
                    "blamedFunction" : null,
                    "cause" : null,
                    "expectedCause" : null,
                    "expectedFunction" : null,
                    "expectedOwner" : null,
                    "expectsReport" : false,
                    "injectedMilliseconds" : null,
                    "owner" : null,
                    "report" : null,
                    "reportedMilliseconds" : null,
                    "result" : "ok",
                    "retries" : 0,
                    "run" : {
                      "injected" : [

                      ],
                      "reports" : [

                      ],
                      "retries" : 0,
                      "runnableMilliseconds" : 0,
                      "scenario" : "idle",
                      "suppressedStalls" : 0,
                      "thresholdMilliseconds" : 250,
                      "waitedMilliseconds" : 0
                    },
                    "scenario" : "idle"
                  }
                ]

                """
        )
    }

    @Test func theCheckLeavesNoFile() throws {
        _ = try SummaryFile(path: directory.path + "/summary.json")
        #expect(directory.names.isEmpty)
    }

    @Test func anOldSummaryStaysUntilItIsReplaced() throws {
        let path = directory.path + "/summary.json"
        try Data("old".utf8).write(to: URL(filePath: path))
        let file = try SummaryFile(path: path)
        #expect(FileManager.default.contents(atPath: path) == Data("old".utf8))
        try file.write(outcomes)
        #expect(FileManager.default.contents(atPath: path) == Data(try Summary.json(outcomes)))
        #expect(directory.names == ["summary.json"])
    }

    @Test func aSymbolicLinkIsFollowed() throws {
        try Data("old".utf8).write(to: URL(filePath: directory.path + "/real.json"))
        try FileManager.default.createSymbolicLink(
            atPath: directory.path + "/link.json", withDestinationPath: "real.json"
        )
        try SummaryFile(path: directory.path + "/link.json").write(outcomes)
        let written = FileManager.default.contents(atPath: directory.path + "/real.json")
        #expect(written == Data(try Summary.json(outcomes)))
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: directory.path + "/link.json") == "real.json")
    }

    @Test(arguments: ["/dev/null", "/", "/proc/version/summary.json"])
    func aPathThatCannotBeAFileIsRefused(path: String) throws {
        let failure = #expect(throws: ScenariosFailure.self) { try SummaryFile(path: path) }
        #expect(failure?.status == .cannotCreate)
        #expect(failure?.sentence.contains(path) == true)
    }

    @Test func aMissingDirectoryIsRefused() throws {
        let failure = #expect(throws: ScenariosFailure.self) {
            try SummaryFile(path: directory.path + "/no/summary.json")
        }
        #expect(failure?.status == .cannotCreate)
        #expect(failure?.sentence.contains(directory.path + "/no/summary.json") == true)
        let left = directory.names
        #expect(left.isEmpty)
    }

    @Test func aRemovedDirectoryFailsTheWrite() throws {
        let file = try SummaryFile(path: directory.path + "/summary.json")
        try FileManager.default.removeItem(atPath: directory.path)
        #expect(throws: ScenariosFailure.self) { try file.write(outcomes) }
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

    @Test func anUnavailableScenarioIsCounted() {
        let outcome = Outcome.stub("glib", in: "sleep()", injected: nil, unavailable: "there is no library")
        let text = SummaryTable([outcome]).text
        #expect(text.contains("not-available"))
        #expect(text.contains("\n0 of 1 ok, 0 failed, 1 not available, 0 inconclusive; 0 run again"))
    }

    @Test func aReportWithoutAFunctionHasAQuestionMark() {
        let outcome = Outcome.stub(
            "spin", in: "spin()", [ReportedStall(file: "a.json", loop: "main", milliseconds: 500, function: nil)])
        #expect(SummaryTable([outcome]).text.contains("500.0  ?                ?      wrong-function  a.json"))
    }

    @Test(arguments: [
        (0.0, "0.0"), (0.04, "0.0"), (0.05, "0.1"), (99.96, "100.0"), (750, "750.0"), (1234.56, "1234.6"),
        (-0.9, "-0.9"), (-12, "-12.0"),
    ])
    func millisecondsHaveOneDecimal(value: Double, text: String) {
        #expect(value.oneDecimal == text)
    }
}
