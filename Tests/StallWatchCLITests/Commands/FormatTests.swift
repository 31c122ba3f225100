import Foundation
import StallReports
import TestSupport
import Testing
import TextOutput

@testable import StallWatchCLI

/// The formats of `show`, `top` and `diff` for issues and CI systems.
@Suite struct FormatTests {
    private func folder() throws -> TemporaryDirectory {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1), ReportFixture(number: 2, milliseconds: 900)], in: "base/")
        try scratch.write(
            [
                ReportFixture(number: 3),
                ReportFixture(
                    number: 4, milliseconds: 2_500, fingerprint: "0000000000000001", function: "index|all(`x`)",
                    cause: "cpu"),
            ], in: "new/")
        return scratch
    }

    @Test func showPrintsMarkdownForAnIssue() throws {
        let result = try Tool.run(["show", "new", "--by", "longest", "--markdown"], in: try folder())
        #expect(result.status == 0)
        #expect(result.output.hasPrefix("### main stalled for 2.50 s in ``index|all(`x`)``\n\n**cpu** (certain): "))
        #expect(result.output.contains("\n| where | `NoteStore.swift:88` |\n"))
        #expect(result.output.contains("\n```text\nLock\n"))
        #expect(
            result.output.split(separator: "\n", omittingEmptySubsequences: false).count <= ReportMarkdown.maximumLines)
    }

    @Test func aLongReportFitsAnIssue() throws {
        var report = try StallReport(jsonData: ReportFixture(number: 1).bytes)
        let deep = (0..<500).map { _ in report.frames.indices.lowerBound }
        report.stacks = report.stacks.map { _ in deep }
        let view = ReportView(report: report, origin: ReportOrigin(path: "r.json"), terminal: Terminal())
        let lines = ReportMarkdown(view: view).text.split(separator: "\n", omittingEmptySubsequences: false)
        // The last element is empty: the text ends with a line feed.
        #expect(lines.count - 1 == ReportMarkdown.maximumLines)
        #expect(lines.dropLast(2).last?.hasSuffix(": stallwatch show --id \(report.id)") == true)
    }

    @Test func topPrintsAMarkdownTable() throws {
        let result = try Tool.run(["top", "new", "--format", "markdown"], in: try folder())
        #expect(result.output.contains("\n| 83 % | 1 | 2.50 s | 2.50 s | cpu | ``index\\|all(`x`)`` | "))
        #expect(result.output.hasSuffix("\n\n2 stalls in 2 groups, 3.00 s in 2 reports.\n"))
    }

    @Test func annotationsAndASummaryForGitHub() throws {
        let scratch = try folder()
        let result = try Tool.run(
            ["diff", "base", "new", "--format", "github", "--fail-on", "new"], in: scratch,
            environment: ["GITHUB_WORKSPACE": "/src/notes", "GITHUB_STEP_SUMMARY": scratch.path("summary.md")]
        )
        #expect(result.status == 1)
        #expect(result.errors == "Failed: 1 new.\n")
        let lines = result.output.split(separator: "\n")
        #expect(
            lines.first?.hasPrefix("::error file=NoteStore.swift,line=88,title=new%3A 2.50 s in index|all(`x`)::")
                == true)
        let summary = try String(contentsOfFile: scratch.path("summary.md"), encoding: .utf8)
        #expect(summary.contains("| **new** | 1 | "))
    }

    @Test func aSummaryThatCannotBeWrittenIsAnError() throws {
        let result = try Tool.run(
            ["top", "new", "--format", "github"], in: try folder(),
            environment: ["GITHUB_STEP_SUMMARY": "/nowhere/summary.md"]
        )
        #expect(result.status == 73)
        #expect(result.errors.contains("/nowhere/summary.md"))
        #expect(result.output.hasPrefix("::warning "), "the annotations are there all the same")
    }

    @Test func twoFormatsAreAMistake() throws {
        let result = try Tool.run(["top", "new", "--json", "--format", "junit"], in: try folder())
        #expect(result.status == 64)
        #expect(result.errors.hasPrefix("Error: Give only one of --format, --markdown and --json.\n"))
    }
}
