import ArgumentParser
import Foundation
import Glibc
import StallReports
import Testing
import TestSupport
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
        let result = try Tool.run(["show", "new", "--sort", "longest", "--markdown"], in: try folder())
        #expect(result.status == 0)
        let title = "### main stalled for 2.50 s in ``index|all(`x`)`` (timer)"
        #expect(result.output.hasPrefix("\(title)\n\n**cpu** (certain): "))
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
        #expect(result.output.hasSuffix("\n\n2 stalls in 2 groups: 3.00 s in all, the longest 2.50 s.\n"))
    }

    @Test func annotationsAndASummaryForGitHub() throws {
        let scratch = try folder()
        // One would be no more than chance.
        let more = (5...7).map {
            ReportFixture(
                number: $0, milliseconds: 2_500, fingerprint: "0000000000000001", function: "index|all(`x`)",
                cause: "cpu")
        }
        try scratch.write(more, in: "new/")
        let result = try Tool.run(
            ["diff", "base", "new", "--format", "github", "--fail-on", "new"], in: scratch,
            environment: ["GITHUB_WORKSPACE": "/src/notes", "GITHUB_STEP_SUMMARY": scratch.path("summary.md")]
        )
        #expect(result.status == 1 && result.errors == "Failed: 1 new.\n", "\(result)")
        let lines = result.output.split(separator: "\n")
        #expect(
            lines.first?.hasPrefix("::error file=NoteStore.swift,line=88,title=new%3A 10.00 s in index|all(`x`)::")
                == true)
        let summary = try String(contentsOfFile: scratch.path("summary.md"), encoding: .utf8)
        #expect(summary.contains("| **new** | 4 | "))
    }

    /// A report of the lock, whose cause has advice.
    @Test(arguments: [["show", "base"], ["top", "base"], ["diff", "none", "base"]])
    func `what CI shows has the sentence and what to try`(command: [String]) throws {
        let scratch = try folder()
        try scratch.write("none/other.txt", "")
        let lines = [
            "Blocked for 480 of 500 ms in pthread_mutex_lock.", "Try: Move the sleep in writeWAL() out of the section",
        ]
        let github = try Tool.run(command + ["--format", "github"], in: scratch)
        #expect(github.status == 0 && github.output.contains("%0A" + lines.joined(separator: "%0A")), "\(github)")
        let junit = try Tool.run(command + ["--format", "junit"], in: scratch)
        #expect(junit.status == 0 && junit.output.contains("&#10;" + lines.joined(separator: "&#10;")), "\(junit)")
    }

    @Test func aSummaryThatCannotBeWrittenIsAnError() throws {
        let result = try Tool.run(
            ["top", "new", "--format", "github"], in: try folder(),
            environment: ["GITHUB_STEP_SUMMARY": "/nowhere/summary.md"]
        )
        #expect(result.status == 73 && result.errors.contains("/nowhere/summary.md"), "\(result)")
        #expect(result.output.hasPrefix("::warning "), "the annotations are there all the same")
    }
}

/// Text output fits several widths, and is complete at those that are recorded.
@Suite struct ScreenTests {
    static let widths = [60, 80, 120]

    private func expect(_ text: String, _ name: String, _ width: Int, recorded: [Int]) throws {
        #expect(text.split(separator: "\n").allSatisfy { String($0).columns <= width })
        if recorded.contains(width) { try ExpectedTexts.screens.expect(text, "\(name)-\(width)") }
    }

    private func terminal(_ width: Int) -> Terminal { Terminal(isTerminal: true, width: width) }

    @Test(arguments: widths) func top(width: Int) throws {
        var groups = StallGroups()
        let causes = ["cpu", "lock", "io", "cpuContention"]
        for number in 1...60 {
            let kind = number % 25
            let report = ReportFixture(
                number: number, startedAt: "2026-11-21T08:\(number + 9 < 60 ? number + 9 : 59):00.000000Z",
                milliseconds: Double(250 + kind * 100 + number), loop: kind % 3 == 0 ? "storage" : "main",
                fingerprint: "\(kind + 10)c41d07a3be8150",
                function: kind > 20 ? "Database.query(_:with:)" : "Feature\(kind).refreshAll(completion:)",
                cause: causes[kind % 4]
            )
            // The nearest caller is the same for all groups.
            var summary = try ReportSummary(json: report.bytes)
            summary.callers = ["Cache.fetch(_:)", "Screen\(kind).load()"]
            groups.add(summary, ReportOrigin(path: "x"))
        }
        var terminal = terminal(width)
        terminal.height = 12
        let shown = Array(groups.sorted(by: .total).prefix(TopTable.limit(for: terminal)))
        let text = TopTable(groups: groups, shown: shown).text(for: terminal)
        #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 12, "with the next prompt")
        try expect(text, "top", width, recorded: [80, 120])
    }

    @Test(arguments: widths) func showOneStack(width: Int) throws {
        let report = try StallReport(jsonData: ReportFixture(number: 1, milliseconds: 12_500, repeats: 2).bytes)
        let view = ReportView(
            report: report, origin: ReportOrigin(path: "stalls/stall-20261121T080000.123456Z-000000000001.json"),
            terminal: terminal(width))
        try expect(view.text, "show-lock", width, recorded: [60])
    }

    /// One screen, with the sources of the lock's owner and of the thread that waits for it.
    @Test(arguments: widths) func showOnOneScreen(width: Int) throws {
        let scratch = try TemporaryDirectory()
        let save = [
            "    func save(_ note: Note) {", "        notes.append(note)", "        lock.lock()", "        writeWAL()",
        ]
        let blank = [String](repeating: "", count: 85)
        let waiter = try scratch.write(
            "NoteStore.swift", (blank + save + ["        lock.unlock()"]).joined(separator: "\n"))
        let owner = try scratch.write(
            "WAL.swift", "func writeWAL() {\n    lock.lock()\n    usleep(625_000)\n    lock.unlock()\n}")
        var text = ReportFixture(number: 1, file: waiter).json
        for (right, wrong) in [
            (#""function": "writeWAL()""#, #""function": "writeWAL()", "file": "\#(owner)", "line": 3"#),
            (
                #""offset": "0x2f3a0""#,
                #""offset": "0x2f3a0", "function": "Editor.close()", "file": "/e.swift", "line": 7"#
            ),
        ] {
            try #require(text.contains(right))
            text = text.replacingOccurrences(of: right, with: wrong)
        }
        let view = ReportView(
            report: try StallReport(jsonData: Array(text.utf8)), origin: ReportOrigin(path: "stalls/stall-1.json"),
            terminal: terminal(width), sources: SourceFiles(below: [scratch.path]))
        if width >= 80 { #expect(view.brief.count { $0 == "\n" } <= ReportView.screenLines) }
        try expect(view.brief, "show-screen", width, recorded: [80, 120])
    }

    /// A deadlock that ended, samples with several stacks, and repeated reasons.
    @Test(arguments: widths) func showSeveralStacks(width: Int) throws {
        var text = ReportFixture(number: 1, milliseconds: 900).json
        let noStack = (1...11).map { number in
            """
            { "atMilliseconds": \(number * 10), "reason": "the thread did not stop within 20 ms, as in a long read(2)", \
            "isValid": true, "isComplete": false, "heldMicroseconds": 0, "captureMicroseconds": 180 },
            """
        }.joined()
        for (right, wrong) in [
            ("[0, 1, 2, 3], [4]", "[0, 1, 2, 3], [4], [4, 1, 2, 3], [0, 4, 1, 2, 3]"),
            ("\"isDeadlock\": false", "\"isDeadlock\": true"),
            ("\"atMilliseconds\": 375.5, \"stack\": 0", "\"atMilliseconds\": 375.5, \"stack\": 2"),
            ("\"samples\": [", "\"samples\": [ \(noStack)"),
        ] {
            try #require(text.contains(right))
            text = text.replacingOccurrences(of: right, with: wrong)
        }
        let report = try StallReport(jsonData: Array(text.utf8))
        let view = ReportView(report: report, origin: ReportOrigin(path: "-", line: 7), terminal: terminal(width))
        try expect(view.text, "show-tree", width, recorded: [60])
    }

    @Test(arguments: widths) func tree(width: Int) throws {
        var tree = CallTree(.topDown, leavesOutRuntimeFrames: true)
        for (milliseconds, stack) in [
            (900.0, ["libc!read", "NoteStore.load(_:from:)", "ListScreen.refreshAll(completion:)", "main"]),
            (600, ["NoteStore.decode<A>(_:as:using:)", "ListScreen.refreshAll(completion:)", "main"]),
            (4, ["AppDelegate.applicationDidFinishLaunching(_:with:options:)", "main"]),
        ] {
            tree.add(try StackFixture.report(milliseconds, [.init(at: 250, stack: stack)]))
        }
        let text = TreeCommand.text(tree.finished(), minimumPercent: 1, for: terminal(width))
        try expect(text, "tree", width, recorded: [60])
    }

    @Test(arguments: widths) func diff(width: Int) throws {
        let scratch = try TemporaryDirectory()
        for (number, (folder, count, fingerprint)) in [
            ("base", 4, "a"), ("new", 20, "a"), ("base", 12, "b"), ("new", 1, "b"), ("new", 4, "c"), ("base", 1, "d"),
        ].enumerated() {
            let reports = (0..<count).map {
                ReportFixture(
                    number: number * 100 + $0, fingerprint: String(repeating: fingerprint, count: 16),
                    function: "NoteStore.\(fingerprint)_searchEverything(matching:limit:)")
            }
            try scratch.write(reports, in: "\(folder)/")
        }
        let values = FilterValues(ReportFilter())
        let sets = try ["base", "new"].map {
            try ReportSet(
                scratch.path + "/" + $0, filters: try FilterOptions.parse([]), strict: false, hours: 10, values
            )
        }
        let comparison = Comparison(base: sets[0], new: sets[1], tolerance: 0.25)
        let text = comparison.text(for: terminal(width), showsSame: true)
        try expect(text, "diff", width, recorded: [80, 120])
        let color = comparison.text(for: Terminal(isTerminal: true, width: width, hasColor: true), showsSame: true)
        #expect(color.contains("\u{1b}[31mworse") && color.contains("\u{1b}[32mbetter"))
    }

    /// At any width, only table cells may be cut.
    @Test func paragraphsFitEveryWidth() throws {
        let text = "Blocked for 480 of 500 ms in pthread_mutex_lock, which a_thread_with_a_very_long_name_holds."
        for width in 10...100 {
            let lines = text.wrapped(to: width, indentation: "  ").split(separator: "\n").map(String.init)
            #expect(lines.allSatisfy { $0.columns <= max(width, 12) })
            #expect(lines.dropFirst().allSatisfy { $0.hasPrefix("  ") })
            #expect(lines.joined().filter { $0 != " " } == text.filter { $0 != " " })
        }
        #expect("  a word of ten".wrapped(to: 12, indentation: "  ") == "  a word of\n  ten")
        #expect("a longerthanten".wrapped(to: 12, indentation: "  ") == "a\n  longerthan\n  ten")
        #expect(String(repeating: "w", count: 1_000_000).wrapped(to: 10, indentation: "").utf8.count == 1_099_999)
        #expect("漢字漢字漢字漢字".wrapped(to: 12).split(separator: "\n").map(String.init) == ["漢字漢字漢字", "漢字"])
    }
}

@Suite struct PagerTests {
    private let scratch = TemporaryDirectory.ofTest()

    /// Runs the tool on a terminal of five lines, and prints what the terminal gets.
    private static let onTerminal = """
        import fcntl, os, pty, struct, sys, termios
        pid, terminal = pty.fork()
        if pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 80, 0, 0))
            os.execv(sys.argv[1], sys.argv[1:])
        try:
            while part := os.read(terminal, 4096): sys.stdout.buffer.write(part)
        except OSError: pass
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """

    @Test(arguments: [("sed s/^/PAGED/", true), ("cat", false), ("no-such-pager", false), ("", false)])
    func `a text that is longer than the terminal goes to the pager`(pager: String, isPaged: Bool) throws {
        try scratch.write([ReportFixture(number: 1)], in: "stalls/")
        for (words, isLong) in [(["show"], true), (["show", "--json"], false), (["--version"], false)] {
            var command = try Tool.command(words, environment: ["TERM": "xterm", "PAGER": pager])
            command.arguments = ["-c", Self.onTerminal, command.program] + command.arguments
            command.program = "/usr/bin/python3"
            command.directory = scratch.path
            let result = try command.run()
            #expect(result.status == 0 && !result.output.isEmpty, "\(result)")
            #expect(result.output.contains("PAGED") == (isPaged && isLong), "\(result)")
        }
    }
}
