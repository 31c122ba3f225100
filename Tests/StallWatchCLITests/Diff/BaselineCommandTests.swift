import Foundation
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatchCLI

@Suite struct BaselineUpdateTests {
    private func baseline(_ scratch: TemporaryDirectory, _ name: String) throws -> StallBaseline {
        try StallBaseline(jsonData: [UInt8](Data(contentsOf: URL(fileURLWithPath: scratch.path(name)))))
    }

    @Test func `each fingerprint of the reports becomes one entry`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write(
            [
                ReportFixture(number: 1), ReportFixture(number: 2),
                ReportFixture(number: 3, fingerprint: "0000000000000abc", function: "load()"),
            ], in: "reports/")
        let result = try Tool.run(["baseline", "update", "reports", "--expires", "2999-12-31"], in: scratch)
        #expect(result.output == "stall-baseline.json: 2 entries added until 2999-12-31, 0 kept.\n")
        #expect(result.status == 0)
        let entries = try baseline(scratch, "stall-baseline.json").entries
        #expect(entries.map(\.fingerprint).sorted() == ["0000000000000abc", "9f2c41d07a3be815"])
        #expect(entries.first { $0.fingerprint == "0000000000000abc" }?.culprit == "load()")
        #expect(entries.allSatisfy { $0.expires.description == "2999-12-31" && $0.loop == "main" })
    }

    @Test func `entries that exist are kept, and expired ones are counted`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write(
            "known.json",
            #"{"version": 1, "stalls": [{"fingerprint": "9f2c41d07a3be815", "expires": "2020-01-31", "#
                + #""culprit": "old()"}]}"#)
        let reports = [ReportFixture(number: 1), ReportFixture(number: 2, fingerprint: "0000000000000abc")]
        try scratch.write(reports, in: "reports/")
        let result = try Tool.run(["baseline", "update", "reports", "--file", "known.json"], in: scratch)
        #expect(result.output.hasPrefix("known.json: 1 entry added until "))
        #expect(result.output.hasSuffix(", 1 kept.\n1 entry has expired: edit the day or remove it.\n"))
        let entries = try baseline(scratch, "known.json").entries
        #expect(entries.first?.expires.description == "2020-01-31")
        #expect(entries.first?.culprit == "old()")
        #expect(entries.count == 2)
    }

    @Test func `a damaged baseline is an error and stays as it is`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write("known.json", #"{"version": 1, "stalls": [{"fingerprint": "x", "expires": "2020-01-31"}]}"#)
        try scratch.write([ReportFixture(number: 1)], in: "reports/")
        let result = try Tool.run(["baseline", "update", "reports", "--file", "known.json"], in: scratch)
        #expect(result.status == 65)
        #expect(result.errors.contains("known.json is not a baseline: stalls[0].fingerprint is \"x\""))
        #expect(try String(contentsOfFile: scratch.path("known.json"), encoding: .utf8).contains("\"x\""))
    }

    @Test(arguments: ["2020-01-01", "tomorrow"])
    func `a day that is over or no day is wrong usage`(day: String) throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1)], in: "reports/")
        let result = try Tool.run(["baseline", "update", "reports", "--expires", day], in: scratch)
        #expect(result.status == 2)
        #expect(result.errors.contains(day))
    }
}
