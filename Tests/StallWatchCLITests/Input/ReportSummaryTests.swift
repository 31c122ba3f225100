import StallReports
import Foundation
import Testing

@testable import StallWatchCLI

@Suite struct ReportSummaryTests {
    @Test func aSummaryEqualsThatOfTheWholeReport() throws {
        let fixtures = [
            ReportFixture(),
            ReportFixture(number: 9, kind: "saturation", state: "abandoned", fingerprint: nil, repeats: 12),
            ReportFixture(metadata: [:], function: "a\\\"b\\u00e9", file: "/é/😀.swift"),
        ]
        for fixture in fixtures {
            let report = try StallReport(jsonData: fixture.bytes)
            #expect(try ReportSummary(json: fixture.bytes, functions: true) == ReportSummary(report))
            #expect(try ReportSummary(json: report.jsonData(), functions: true) == ReportSummary(report))
            #expect(try ReportSummary(json: fixture.bytes, functions: false).functions.isEmpty)
        }
    }

    @Test(arguments: [
        (
            "\"durationMilliseconds\": 500.0", "\"durationMilliseconds\": -1",
            "$.durationMilliseconds: the duration is negative"
        ),
        (
            "\"durationMilliseconds\": 500.0", "\"durationMilliseconds\": 1e15",
            "$.durationMilliseconds: the duration is neg"
        ),
        ("\"repeats\": 0", "\"repeats\": -1", "$.repeats: the count is negative"),
        ("\"pid\": 4700", "\"pid\": \"x\"", "$.process.pid: Expected to decode Int32 but found a string"),
        ("\"repeats\": 0,", "", "$: repeats is missing"),
    ])
    func aFaultIsNamedByItsPlace(right: String, wrong: String, fault: String) throws {
        let text = ReportFixture().json
        try #require(text.contains(right))
        let bytes = Array(text.replacingOccurrences(of: right, with: wrong).utf8)
        let error = #expect(throws: UnreadableReport.self) { try ReportSummary(json: bytes, functions: false) }
        #expect(error?.reason.hasPrefix("this is not a stall report: \(fault)") == true, "\(error?.reason ?? "")")
    }
}
