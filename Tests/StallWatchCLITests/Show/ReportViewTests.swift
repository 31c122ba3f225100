import Foundation
import TestSupport
import Testing
import TextOutput

@testable import StallReports
@testable import StallWatchCLI

@Suite struct ContextOutputTests {
    private let scratch = TemporaryDirectory.ofTest()

    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let feed = """
        { "taskID": 12, "taskName": "feed", "label": "GET /feed", "traceID": "\(trace)", "spanID": "00f067aa0ba902b7",
          "attributes": { "user": "free" } }
        """

    @Test func `an interpreter's stack has no functions of the script`() throws {
        let report = ReportFixture(number: 1).json
        try scratch.write("stall-1.json", report.replacingOccurrences(of: "/bin/notes\"", with: "/bin/python3.11\""))
        let words = "Functions of Python have no names here"
        #expect(try Tool.run(["show", "stall-1.json"], in: scratch).output.contains(words))
        #expect(try !Tool.run(["show", "."], in: try folder()).output.contains(words))
    }

    @Test func `the reason why nothing is known is shown`() throws {
        let fixture = ReportFixture(number: 1, missingSamplesReason: "the turn had ended")
        var report = try StallReport(jsonData: Array(fixture.json.utf8))
        report.cause = nil
        let text = ReportView(report: report, origin: ReportOrigin(path: "-"), terminal: Terminal()).brief
        #expect(text.contains("No sample: the turn had ended."))
    }

    private func folder() throws -> TemporaryDirectory {
        let scratch = try TemporaryDirectory()
        try scratch.write([
            ReportFixture(number: 1, milliseconds: 300, context: Self.feed),
            ReportFixture(number: 2, milliseconds: 500, context: Self.feed),
            ReportFixture(number: 3, milliseconds: 700, context: #"{ "taskID": 9, "taskName": "import" }"#),
            ReportFixture(number: 4, milliseconds: 100),
        ])
        return scratch
    }

    @Test(arguments: ["--by", "--group-by"]) func `stalls are grouped by context`(option: String) throws {
        let result = try Tool.run(["top", ".", option, "context", "--json"], in: try folder())
        let top = try #require(JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
        let groups = try #require(top["groups"] as? [[String: Any]])
        #expect(groups.map { $0["context"] as? String } == ["GET /feed", "import", nil])
        #expect(groups.map { $0["totalMilliseconds"] as? Double } == [800, 700, 100])
    }

    @Test func `the table and Markdown have a column where reports have contexts`() throws {
        let text = try Tool.run(["top", "."], in: try folder()).output
        #expect(text.contains("cause  context"), "\(text)")
        #expect(text.contains("lock   GET /feed +1"), "\(text)")
        let markdown = try Tool.run(["top", ".", "--by", "context", "--markdown"], in: try folder()).output
        #expect(markdown.contains("| fingerprint | context |") && markdown.contains("| GET /feed |"), "\(markdown)")
        let without = try TemporaryDirectory()
        try without.write([ReportFixture(number: 1)])
        #expect(try !Tool.run(["top", "."], in: without).output.contains("context"))
    }

    @Test func `reports are filtered by context`() throws {
        let scratch = try folder()
        let one = try Tool.run(["top", ".", "--context", "import", "--json"], in: scratch)
        #expect(one.output.contains(#""reports" : 1"#), "\(one.output)")
        let two = try Tool.run(["top", ".", "--context", "import", "--context", "GET /feed", "--json"], in: scratch)
        #expect(two.output.contains(#""reports" : 3"#), "\(two.output)")
        let none = try Tool.run(["top", ".", "--context", "GET /fed"], in: scratch)
        #expect(none.errors == "Error: --context: no report has 'GET /fed'. The values are: GET /feed, import.\n")
        #expect(none.status == 1)
    }

    @Test func `a report shows its context in one line`() throws {
        try scratch.write([ReportFixture(number: 1, context: Self.feed)])
        let line = "GET /feed, task 12 \"feed\", trace \(Self.trace), span 00f067aa0ba902b7, user=free"
        #expect(try Tool.run(["show", ".", "--all"], in: scratch).output.contains("\ncontext     \(line)\n"))
        let markdown = try Tool.run(["show", ".", "--markdown"], in: scratch).output
        #expect(markdown.contains("| context | GET /feed, task 12"), "\(markdown)")
    }

    @Test func `a report shows the tasks that it keeps waiting in a few lines`() throws {
        var report = try StallReport(jsonData: Array(ReportFixture(number: 1).json.utf8))
        report.frames += (0..<7).map {
            StallReport.Frame(
                offset: "0x\($0 + 1)", function: "f\($0)()", file: "/src/App.swift", line: 7, isInApp: true, kind: .code
            )
        }
        let first = report.frames.count - 7
        let stacks = report.stacks.count
        report.stacks += (0..<7).map { [first + $0] }
        report.tasks = TaskList(
            tasks: (0..<7).map {
                TaskList.Task(id: UInt64($0), state: .enqueued, wait: .executor, target: 0, stack: stacks + $0)
            },
            executors: [.init(kind: .mainActor, address: "0x1", thread: 4700)],
            incompleteReason: "memory is swapped out")
        report.tasks?.tasks[6].count = 12
        try Data(report.jsonData()).write(to: URL(filePath: scratch.path + "/" + ReportFixture(number: 1).fileName))
        let output = try Tool.run(["show", ".", "--all"], in: scratch).output
        let lines = output.split(separator: "\n").drop { $0 != "Tasks that wait" }.map(String.init)
        #expect(
            lines.dropFirst().first == "  12 tasks in f6() at App.swift:7 await the main actor on thread 4700",
            "\(output)")
        #expect(
            lines.dropFirst(5).prefix(3).map { $0 } == [
                "  1 task in f3() at App.swift:7 awaits the main actor on thread 4700", "  … and in 2 other places",
                "  there may be more: memory is swapped out",
            ], "\(output)")
    }
}

@Suite struct PeerOutputTests {
    private func folder() throws -> TemporaryDirectory {
        let scratch = try TemporaryDirectory()
        let peers = """
            "peers": [
              { "role": "holder", "pid": 812, "name": "python3", "state": "S", "threads": 1, "systemCall": "clock_nanosleep",
                "runningMilliseconds": 2012.5 },
              { "role": "holder", "pid": 4700, "isThisProcess": true }
            ], "omittedPeers": 2,
            """
        let fixture = ReportFixture(number: 1)
        let json = fixture.json.replacing(#""name": "futex","#, with: #""name": "flock", \#(peers)"#)
        try #require(json != fixture.json)
        try scratch.write(fixture.fileName, json)
        return scratch
    }

    private static let lines = [
        "the lock is held by python3 (pid 812, running for 2 s), which was in clock_nanosleep when it was looked at",
        "the lock is held by this process", "2 more processes are left out",
    ]

    @Test(arguments: [["show", ".", "--all"], ["show", ".", "--markdown"]]) func `each process has a line`(
        arguments: [String]
    )
        throws
    {
        let text = try Tool.run(arguments, in: try folder()).output
        #expect(text.contains("Waits for\n  in flock(0x7f1c2c0012a0)\n"), "\(text)")
        for line in Self.lines { #expect(text.contains("  └ \(line)\n"), "\(text)") }
    }

    @Test func `the page has them`() throws {
        let scratch = try folder()
        _ = try Tool.run(["html", ".", "--output", "page.html"], in: scratch)
        let page = try String(contentsOfFile: scratch.path + "/page.html", encoding: .utf8)
        for line in Self.lines { #expect(page.contains("flock(0x7f1c2c0012a0): \(line)")) }
    }

    @Test(arguments: [("certain", "no thread can continue"), ("likely", "a time limit may end a wait")])
    func `a cycle with a time limit may end`(confidence: String, words: String) throws {
        let scratch = try TemporaryDirectory()
        let json = ReportFixture(number: 1, state: "ongoing", cause: "deadlock").json
            .replacing(#""confidence": "certain""#, with: "\"confidence\": \"\(confidence)\"")
            .replacing(#""isDeadlock": false"#, with: #""isDeadlock": true"#)
        try scratch.write("stall-1.json", json)
        let text = try Tool.run(["show", ".", "--all"], in: scratch).output
        #expect(text.contains("  The threads wait in a cycle: \(words).\n"), "\(text)")
    }

    @Test func `an owner that computed is said so, whatever it was in at the last look`() throws {
        let scratch = try TemporaryDirectory()
        let fixture = ReportFixture(number: 1)
        let time = #""time": { "observedMilliseconds": 400, "onCPUMilliseconds": 380, "runQueueMilliseconds": 0 }"#
        let json = fixture.json.replacing(#""isRunning": false,"#, with: #""isRunning": false, \#(time),"#)
        try #require(json != fixture.json)
        try scratch.write(fixture.fileName, json)
        let words = "which was on a CPU for 380 of 400 ms"
        #expect(try Tool.run(["show", ".", "--all"], in: scratch).output.contains(words))
        _ = try Tool.run(["html", ".", "--output", "page.html"], in: scratch)
        let page = try String(contentsOfFile: scratch.path + "/page.html", encoding: .utf8)
        #expect(page.contains(#""doing":"was on a CPU for 380 of 400 ms""#))
    }

    @Test func `a report without processes has no such part`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([ReportFixture(number: 1)])
        #expect(try !Tool.run(["show", ".", "--all"], in: scratch).output.contains("Waits for"))
    }
}

@Suite struct TurnStripTests {
    private func turn(_ at: Double, _ duration: Double) -> StallReport.Turn {
        StallReport.Turn(atMilliseconds: at, durationMilliseconds: duration, waitedMilliseconds: 0)
    }

    @Test func eachCellHasTheShareOfItsTime() {
        let strip = TurnStrip([turn(-100, 50), turn(0, 100)], over: -200...200, cells: 4)
        #expect(strip.shares == [0, 0.5, 1, 0])
        #expect(strip.text == "·▓█·")
    }

    @Test func partsOutsideOfThePeriodDoNotCount() {
        let strip = TurnStrip([turn(-1_000, 910), turn(90, 1_000)], over: -100...100, cells: 2)
        #expect(strip.shares.map { ($0 * 100).rounded() } == [10, 10])
        #expect(strip.text == "░░")
    }

    @Test func overlappingTurnsFillACellOnce() {
        #expect(TurnStrip([turn(0, 10), turn(0, 10)], over: 0...10, cells: 1).shares == [1])
    }
}

@Suite struct SourceExcerptTests {
    private let lines = (1...20).map { Substring("line \($0)") }

    @Test(arguments: [(1, 1, 0, 4), (2, 1, 1, 5), (10, 7, 3, 7), (20, 17, 3, 4)])
    func threeLinesBeforeAndAfter(number: Int, first: Int, place: Int, count: Int) throws {
        let excerpt = try #require(SourceExcerpt(lines, around: number))
        #expect(excerpt.first == first)
        #expect(excerpt.place == place)
        #expect(excerpt.lines.count == count)
        #expect(excerpt.lines[place] == "line \(number)")
    }

    @Test(arguments: [Int.min, -1, 0, 21, Int.max])
    func aLineThatIsNotThereHasNone(number: Int) {
        #expect(SourceExcerpt(lines, around: number) == nil)
    }

    @Test func controlCharactersAreReplaced() throws {
        let excerpt = try #require(SourceExcerpt(["let a = \u{1b}[31m1"], around: 1))
        #expect(excerpt.lines.allSatisfy { !$0.contains("\u{1b}") })
    }
}

@Suite struct SourceFilesTests {
    /// A directory with files inside `app` and beside it, and what `app` shows of them.
    private func lines(of file: String, linkedTo target: String? = nil) throws -> [Substring] {
        let directory = try TemporaryDirectory()
        for folder in ["/app", "/app2"] { mkdir(directory.path + folder, 0o700) }
        for name in ["app/a.swift", "app/secret.env", "app/Makefile", "app2/b.swift", "c.swift"] {
            try directory.write(name, Array("one\ntwo\n".utf8))
        }
        if let target { symlink(target, directory.path + "/" + file) }
        let path = file.hasPrefix("/") || file == "a.swift" ? file : directory.path + "/" + file
        return SourceFiles(below: [directory.path + "/app"]).lines(of: path)
    }

    @Test(arguments: ["app/a.swift", "app/../app/a.swift", "a.swift"])
    func `a source file below the directory is shown`(file: String) throws {
        #expect(try lines(of: file).first == "one")
    }

    @Test(
        arguments: [
            ("/ci/notes/Sources/notes/a.swift", "right"), ("/notes/a.swift", "right"),
            // A name alone is that of many files, and a longer end is that of fewer.
            ("/ci/a.swift", nil), ("/ci/other/notes/a.swift", "longer"), ("/ci/../notes/../../c.swift", nil),
        ] as [(String, Substring?)])
    func `a file of another checkout is found by the end of its path`(path: String, first: Substring?) throws {
        let directory = try TemporaryDirectory()
        for (name, text) in [
            ("a.swift", "wrong"), ("Sources/notes/a.swift", "right"), ("notes/a.swift", "right"),
            ("other/notes/a.swift", "longer"),
        ] {
            try directory.write("root/" + name, text)
        }
        try directory.write("c.swift", "secret")
        #expect(SourceFiles(below: [directory.path + "/root"]).lines(of: path).first == first)
    }

    @Test(arguments: [
        "app/secret.env", "app/Makefile", "app2/b.swift", "c.swift", "app/../c.swift", "/etc/passwd", "app",
        "app/none.swift",
    ])
    func `any other file is not shown`(file: String) throws { #expect(try lines(of: file).isEmpty) }

    @Test(arguments: ["secret.env", "../c.swift", "/etc/passwd"])
    func `a link to another file is not shown`(target: String) throws {
        #expect(try lines(of: "app/link.swift", linkedTo: target).isEmpty)
    }

    @Test func `a file that is too large has no lines`() throws {
        let directory = try TemporaryDirectory()
        let large = directory.path + "/large.swift"
        try String(repeating: "a\n", count: SourceFiles.maximumBytes / 2 + 1)
            .write(toFile: large, atomically: true, encoding: .utf8)
        #expect(SourceFiles(below: [directory.path]).lines(of: large).isEmpty)
    }
}
