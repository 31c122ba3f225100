import Foundation
import TestSupport
import Testing

@testable import StallReports
@testable import StallWatchCLI

@Suite struct DiffTests {
    private let scratch = TemporaryDirectory.ofTest()

    /// Two sides, each monitored for twelve hours by the times of its process, which starts at seven.
    private func folders() throws -> TemporaryDirectory {
        let scratch = try TemporaryDirectory()
        var number = 0
        func add(_ folder: String, _ fingerprint: String, _ count: Int, _ milliseconds: Double) throws {
            for _ in 0..<count {
                number += 1
                try scratch.write(
                    [
                        ReportFixture(
                            number: number, milliseconds: milliseconds, fingerprint: fingerprint,
                            function: "in\(fingerprint.prefix(1))()")
                    ],
                    in: folder
                )
            }
        }
        try add("base/", "aaaaaaaaaaaaaaaa", 4, 500)
        try add("new/", "aaaaaaaaaaaaaaaa", 5, 500)  // no more than chance
        try add("base/", "bbbbbbbbbbbbbbbb", 4, 500)
        try add("new/", "bbbbbbbbbbbbbbbb", 4, 1_000)  // longer
        try add("base/", "cccccccccccccccc", 4, 500)
        try add("new/", "cccccccccccccccc", 20, 500)  // more often
        try add("base/", "dddddddddddddddd", 20, 500)
        try add("new/", "dddddddddddddddd", 2, 500)  // less often
        try add("base/", "eeeeeeeeeeeeeeee", 1, 500)  // gone, which may be chance
        try add("new/", "ffffffffffffffff", 4, 500)  // new
        return scratch
    }

    private let times = ["--base-time", "10h", "--new-time", "10h"]

    @Test func `a loop may be on one side only, and a misspelled one is on neither`() throws {
        try scratch.write([ReportFixture(number: 1)], in: "base/")
        let others = (3...6).map { ReportFixture(number: $0, loop: "render", fingerprint: "b2c41d07a3be8159") }
        try scratch.write([ReportFixture(number: 2)] + others, in: "new/")
        let gate = ["diff", "base", "new", "--fail-on", "new", "--loop"]
        let one = try Tool.run(gate + ["render"], in: scratch)
        #expect(one.errors == "Failed: 1 new.\n" && one.output.hasPrefix("change"), "\(one)")
        let both = try Tool.run(gate + ["main", "--loop", "render"], in: scratch)
        #expect(both.errors == "Failed: 1 new.\n")
        let page = ["html", "base", "new", "-o", "page.html", "--loop", "main", "--loop", "render"]
        #expect(try Tool.run(page, in: scratch).status == 0)
        try scratch.write("none/other.txt", "")
        let empty = try Tool.run(["diff", "none", "none", "--loop", "main"], in: scratch)
        #expect(empty.status == 0, "programs that never stalled: \(empty.errors)")
        let neither = try Tool.run(gate + ["mian"], in: scratch)
        #expect(neither.errors == "Error: --loop: no report has 'mian'. The values are: main, render.\n")
        #expect(neither.status == 1)
    }

    @Test func `the worst changes are the last lines`() throws {
        let result = try Tool.run(["diff", "base", "new"] + times, in: try folders())
        #expect(
            result.output == """
                change  stalls     stalls/h        stalled/h           median  cause  culprit  fingerprint
                gone?        1         0.10            50 ms           500 ms  lock   ine()    eeeeeeee
                better  20 → 2  2.00 → 0.20  1.00 s → 100 ms  500 ms → 500 ms  lock   ind()    dddddddd
                worse    4 → 4  0.40 → 0.40  200 ms → 400 ms  500 ms → 1.00 s  lock   inb()    bbbbbbbb
                worse   4 → 20  0.40 → 2.00  200 ms → 1.00 s  500 ms → 500 ms  lock   inc()    cccccccc
                new          4         0.40           200 ms           500 ms  lock   inf()    ffffffff

                1 new, 2 worse, 1 same, 1 better, 0 gone; 1 with a ? may be chance.
                Before: 33 stalls, monitored 10 h 0 min. Now: 35 stalls, monitored 10 h 0 min.

                """
        )
        #expect(result.status == 0 && result.errors == "", "\(result)")
    }

    @Test(arguments: [
        ("new", 1, "Failed: 1 new.\n"), ("new,worse", 1, "Failed: 1 new, 2 worse.\n"),
        ("better", 1, "Failed: 1 better.\n"), ("gone", 0, ""),
    ])
    func failOnSetsTheExitStatus(words: String, status: Int32, errors: String) throws {
        let result = try Tool.run(["diff", "base", "new", "--fail-on", words] + times, in: try folders())
        #expect(result.status == status && result.errors == errors, "\(result)")
    }

    @Test func equalSetsHaveNoChanges() throws {
        let result = try Tool.run(["diff", "base", "base", "--fail-on", "new,worse,better,gone"], in: try folders())
        #expect(result.output.hasPrefix("0 new, 0 worse, 5 same, 0 better, 0 gone.\n"))
        #expect(result.status == 0)
    }

    @Test func ratesArePerMonitoredTime() throws {
        // Ten times as many stalls in ten times the time are the same rate.
        try scratch.write([ReportFixture(number: 1)], in: "base/")
        try scratch.write((2..<12).map { ReportFixture(number: $0) }, in: "new/")
        func verdict(_ arguments: String...) throws -> String? {
            let result = try Tool.run(["diff", "base", "new", "--json"] + arguments, in: scratch)
            let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
            return (object?["changes"] as? [[String: Any]])?.first?["change"] as? String
        }
        #expect(try verdict("--base-time", "1h", "--new-time", "10h") == "same")
        #expect(try verdict("--base-time", "1h", "--new-time", "1h") == "worse")
        // The process started an hour before.
        #expect(try verdict() == "worse")
        // Statistics files take precedence over reports.
        for (folder, seconds) in [("base", 3_600), ("new", 36_000)] {
            try scratch.write(
                "\(folder)/statistics.json",
                #"{"suppressed": {}, "loops": [{"label": "main", "watchedSeconds": \#(seconds)}]}"#
            )
        }
        #expect(try verdict() == "same")
        let text = try Tool.run(["diff", "base", "new"], in: scratch).output
        #expect(text.contains("Before: 1 stall, monitored 1 h 0 min by the statistics. Now: 10 stalls, "))
    }

    @Test func statisticsWithoutReportsAreASide() throws {
        try scratch.write([ReportFixture(number: 1)], in: "new/")
        // The new side has one stall in an hour.
        for (seconds, status, errors) in [(14_400, 1, "Failed: 1 new.\n"), (3_600, 0, "")] as [(Int, Int32, String)] {
            try scratch.write(
                "base/statistics.json",
                #"{"suppressed": {}, "loops": [{"label": "main", "watchedSeconds": \#(seconds)}]}"#)
            let result = try Tool.run(["diff", "base", "new", "--fail-on", "new"], in: scratch)
            #expect(result.status == status && result.errors == errors, "\(result)")
        }
    }

    @Test(arguments: [(2, false), (3, true), (30, true)])
    func `without a known time both sides count as equally long`(count: Int, fails: Bool) throws {
        try scratch.write((1...count).map { ReportFixture(number: $0) }, in: "new/")
        try scratch.write("base/other.txt", "")
        let result = try Tool.run(["diff", "base", "new", "--fail-on", "new"], in: scratch)
        #expect(result.status == (fails ? 1 : 0) && result.output.contains("new?") == !fails, "\(result)")
    }

    /// A side without reports is valid: the fix worked.
    @Test func anEmptySideIsNoError() throws {
        try scratch.write([ReportFixture(number: 1)], in: "base/")
        try scratch.write("new/other.txt", "")
        let result = try Tool.run(["diff", "base", "new", "--fail-on", "new,worse"], in: scratch)
        #expect(result.output.contains("gone"))
        #expect(
            result.output.hasSuffix(
                """
                0 new, 0 worse, 0 same, 0 better, 0 gone; 1 with a ? may be chance.
                Before: 1 stall, monitored at least 1 h 0 min by the reports. Now: 0 stalls, monitored for an unknown time.

                """))
        #expect(result.status == 0 && result.errors == "", "\(result)")
        #expect(try Tool.run(["diff", "base", "nowhere"], in: scratch).status == 2)
    }
}

@Suite struct BaselineUpdateTests {
    private let scratch = TemporaryDirectory.ofTest()

    private func baseline(_ scratch: TemporaryDirectory, _ name: String) throws -> StallBaseline {
        try StallBaseline(jsonData: [UInt8](Data(contentsOf: URL(fileURLWithPath: scratch.path(name)))))
    }

    @Test func `each fingerprint of the reports becomes one entry`() throws {
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

    @Test func `reports without stalls give a baseline without entries`() throws {
        try scratch.write("reports/notes.txt", "no report")
        let result = try Tool.run(["baseline", "update", "reports"], in: scratch)
        #expect(result.status == 0 && result.output == "stall-baseline.json: 0 entries added, 0 kept.\n", "\(result)")
        #expect(result.errors.hasPrefix("No stalls in reports/.\n"), "\(result)")
        #expect(try baseline(scratch, "stall-baseline.json").entries.isEmpty)
    }

    @Test func `a damaged baseline is an error and stays as it is`() throws {
        try scratch.write("known.json", #"{"version": 1, "stalls": [{"fingerprint": "x", "expires": "2020-01-31"}]}"#)
        try scratch.write([ReportFixture(number: 1)], in: "reports/")
        let result = try Tool.run(["baseline", "update", "reports", "--file", "known.json"], in: scratch)
        #expect(result.status == 65)
        #expect(result.errors.contains("known.json is not a baseline: stalls[0].fingerprint is \"x\""))
        #expect(try String(contentsOfFile: scratch.path("known.json"), encoding: .utf8).contains("\"x\""))
    }

    @Test func `a day that is over is wrong usage`() throws {
        let result = try Tool.run(["baseline", "update", "reports", "--expires", "2020-01-01"], in: scratch)
        #expect(result.status == 2)
        #expect(result.errors.hasPrefix("Error: --expires is 2020-01-01, which is over. Today is 20"))
    }
}
