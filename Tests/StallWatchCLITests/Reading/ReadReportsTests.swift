import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct ReadReportsTests {
    /// A directory next to its NDJSON file, as production set-ups have them.
    @Test(arguments: [["top"], ["show"], ["tree"], ["export", "--format", "collapsed"]])
    func aReportThatIsGivenTwiceCountsOnce(command: [String]) throws {
        let scratch = try TemporaryDirectory()
        let reports = (1...3).map { ReportFixture(number: $0) }
        try scratch.write(reports, in: "once/")
        try scratch.write(reports, in: "twice/")
        try scratch.write("twice/stalls.ndjson", reports.map(\.line).joined())
        let once = try Tool.run(command + ["once"], in: scratch)
        let twice = try Tool.run(command + ["twice"], in: scratch)
        #expect(twice.output == once.output.replacingOccurrences(of: "once", with: "twice"))
        #expect(twice.errors == "3 reports were given twice and counted once.\n")
        #expect(twice.status == 0)
    }

    @Test func validateChecksEveryReport() throws {
        let scratch = try TemporaryDirectory()
        let report = ReportFixture(number: 1)
        try scratch.write([report])
        try scratch.write("stalls.ndjson", report.line)
        #expect(try Tool.run(["validate", "."], in: scratch).output == "2 valid, 0 faulty\n")
    }

    @Test(
        arguments: [
            (
                ["--cause", "boredom"],
                "--cause: no report has 'boredom'. The values are: cpu, cpuContention, deadlock, io, lock, ", 64
            ),
            (
                ["--kind", "stal"],
                "--kind: no report has 'stal'. The values are: later, saturation, stall, starvation.", 64
            ),
            (["--loop", "man"], "--loop: no report has 'man'. The values are: main, storage.", 66),
        ] as [([String], String, Int32)])
    func unknownValuesNameThoseThatExist(arguments: [String], message: String, status: Int32) throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1), ReportFixture(number: 2, kind: "later", loop: "storage")])
        for command in ["top", "show", "tree"] {
            let result = try Tool.run([command, "."] + arguments, in: scratch)
            #expect(result.errors.hasPrefix("Error: " + message))
            #expect(result.output == "")
            #expect(result.status == status)
        }
    }

    /// A word that a newer version has added is not a mistake.
    @Test func aValueOfAReportIsKnown() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1, kind: "later", cause: "gravity")])
        #expect(try Tool.run(["top", ".", "--cause", "gravity", "--kind", "later"], in: scratch).status == 0)
    }
}
