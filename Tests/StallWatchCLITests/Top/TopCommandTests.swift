import Foundation
import TestSupport
import Testing
import TextOutput

@testable import StallWatchCLI

@Suite struct TopTests {
    private let scratch = TemporaryDirectory.ofTest()

    private func folder() throws -> TemporaryDirectory {
        let scratch = try TemporaryDirectory()
        try scratch.write([
            ReportFixture(number: 1, milliseconds: 300),
            ReportFixture(
                number: 2, startedAt: "2026-11-21T09:00:00.000000Z", milliseconds: 500, repeats: 3,
                repeated: [900, 200, 450]
            ),
            ReportFixture(number: 3, milliseconds: 400, cause: "sleep"),
            ReportFixture(
                number: 4, milliseconds: 2_500, process: "mail", pid: 12, metadata: ["version": "2.0", "env": "test"],
                loop: "storage", fingerprint: "0000000000000001", function: "index()", cause: "cpu"
            ),
            ReportFixture(number: 5, kind: "saturation", milliseconds: 10_000, fingerprint: nil),
        ])
        return scratch
    }

    @Test func groupsAreListedWorstFirst() throws {
        let result = try Tool.run(["top", "."], in: try folder())
        #expect(
            result.output == """
                share  count    total     p50     p95     max  last (UTC)   cause  culprit             called by  where               loop     id
                 68 %      1  10.00 s                          11-21 08:00  lock   NoteStore.save(_:)  -          NoteStore.swift:88  main     -
                 17 %      1   2.50 s                          11-21 08:00  cpu    index()                        NoteStore.swift:88  storage  00000000
                 14 %      6   2.10 s  400 ms  500 ms  500 ms  11-21 09:00  lock   NoteStore.save(_:)  -          NoteStore.swift:88  main     9f2c41d0

                5 reports of 8 stalls in 3 groups: 14.60 s in all, the longest 10.00 s.
                Next: stallwatch show . 00000000

                """
        )
        #expect(result.status == 0 && result.errors == "", "\(result)")
    }

    @Test func `stalls that were over when the watchdog looked are counted`() throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([
            ReportFixture(number: 1), ReportFixture(number: 2, missingSamplesReason: "the turn had ended"),
        ])
        let text = try Tool.run(["top", "."], in: scratch).output
        let words = "2 stalls in 1 group: 1.00 s in all, the longest 500 ms; 1 was over when the watchdog looked.\n"
        #expect(text.contains(words), "\(text)")
        let json = try Tool.run(["top", ".", "--json"], in: scratch).output
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(object?["missed"] as? Int == 1)
    }

    @Test(arguments: [["--by", "harm"], ["--sort", "harm"]])
    func `by harm, what is not known comes before where nothing waited`(arguments: [String]) throws {
        let scratch = try TemporaryDirectory()
        try scratch.write([
            ReportFixture(number: 1, milliseconds: 9_000, fingerprint: "0000000000000001", harm: 0),
            ReportFixture(number: 2, milliseconds: 8_000, fingerprint: "0000000000000002"),
            ReportFixture(number: 3, milliseconds: 300, fingerprint: "0000000000000003", harm: 900),
            ReportFixture(number: 4, milliseconds: 300, fingerprint: "0000000000000004", repeats: 3, harm: 250),
        ])
        let result = try Tool.run(["top", ".", "--json"] + arguments, in: scratch)
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        let groups = try #require(object?["groups"] as? [[String: Any]])
        #expect(groups.map { ($0["fingerprint"] as? String)?.last } == ["4", "3", "2", "1"])
        #expect(groups.map { $0["harmMilliseconds"] as? Double } == [1_000, 900, nil, 0])
        let text = try Tool.run(["top", "."] + arguments, in: scratch).output
        for cell in ["harm", "1.00 s", "900 ms", "?", "none"] { #expect(text.contains(cell), "\(text)") }
        #expect(!(try Tool.run(["top", "."], in: scratch).output.contains("harm")))
    }

    @Test func jsonHasTheSame() throws {
        let result = try Tool.run(["top", ".", "--json", "--sort", "count", "--limit", "1"], in: try folder())
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        let top = try #require(object)
        #expect(top["reports"] as? Int == 5)
        #expect(top["count"] as? Int == 8)
        #expect(top["groupCount"] as? Int == 3)
        #expect(top["totalMilliseconds"] as? Double == 14_600)
        let groups = try #require(top["groups"] as? [[String: Any]])
        #expect(groups.count == 1)
        #expect(groups[0]["fingerprint"] as? String == "9f2c41d07a3be815")
        #expect(groups[0]["count"] as? Int == 6)
        #expect(groups[0]["reports"] as? Int == 3)
        #expect(groups[0]["repeats"] as? Int == 3)
        #expect(groups[0]["p50Milliseconds"] as? Double == 400)
        #expect(groups[0]["p95Milliseconds"] as? Double == 500)
        #expect(groups[0]["cause"] as? String == "lock")
        #expect((groups[0]["longest"] as? [String: Any])?["id"] as? String == ReportFixture(number: 2).id)
    }

    @Test(
        arguments: [
            (["--since", "2026-11-21T08:30"], 1), (["--until", "2026-11-21 08:30"], 4), (["--loop", "storage"], 1),
            (["--loop", "storage", "--loop", "main"], 5), (["--cause", "cpu", "--cause", "sleep"], 2),
            (["--kind", "saturation"], 1), (["--function", "index"], 1), (["--function", "writeWAL"], 5),
            (["--fingerprint", "9f2c"], 3), (["--min", "2s"], 2), (["--process", "mail"], 1),
            (["--process", "4700"], 4),
            (["--metadata", "version=1.4.2"], 4), (["--metadata", "version=2.0", "--metadata", "env=test"], 1),
        ] as [([String], Int)])
    func filtersSelectReports(arguments: [String], count: Int) throws {
        let result = try Tool.run(["top", ".", "--json"] + arguments, in: try folder())
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        #expect(object?["reports"] as? Int == count)
        #expect(result.status == 0)
    }

    @Test(arguments: [
        ["--metadata", "version=2.0", "--metadata", "env=live"], ["--cause", "cpu", "--loop", "main"],
        ["--cause", "paging"], ["--fingerprint", "77"],
    ])
    func `no match has the status 1 in every command`(arguments: [String]) throws {
        for command in ["top", "show", "tree"] {
            let result = try Tool.run([command, "."] + arguments, in: try folder())
            #expect(result.errors == "Error: No report matches: 5 reports were read.\n")
            #expect(result.status == 1 && result.output == "", "\(result)")
        }
    }

    @Test func `reports without a cause are found by the word that top shows`() throws {
        let text = ReportFixture(number: 1).json
        let start = try #require(text.range(of: "\"cause\": {"))
        let end = try #require(text.range(of: "\"samples\""))
        try scratch.write("stall-1.json", text.replacingCharacters(in: start.lowerBound..<end.lowerBound, with: ""))
        let top = try Tool.run(["top", ".", "--group-by", "cause", "--json"], in: scratch).output
        #expect(top.contains("\"cause\" : \"unknown\""), "\(top)")
        #expect(try Tool.run(["show", ".", "--cause", "unknown"], in: scratch).status == 0)
        try scratch.write(
            "stall-1.json",
            text.replacingCharacters(in: start.lowerBound..<end.lowerBound, with: "")
                .replacing("\"kind\": \"stall\"", with: "\"kind\": \"spinning\""))
        #expect(try Tool.run(["top", ".", "--group-by", "cause"], in: scratch).output.contains("spinning"))
        #expect(try Tool.run(["show", ".", "--cause", "spinning"], in: scratch).status == 0)
    }

    @Test func everyInputFormGivesTheSameResult() throws {
        let reports = (1...20).map { ReportFixture(number: $0, milliseconds: Double($0) * 100) }
        try scratch.write(reports, in: "directory/below/it/")
        try scratch.write("lines/stalls.ndjson.1", reports.prefix(12).map(\.line).joined())
        try scratch.write("lines/stalls.ndjson", reports.suffix(8).map(\.line).joined())
        let whole = try Tool.run(["top", "directory", "--json"], in: scratch).output
            .replacingOccurrences(of: "directory/below/it/", with: "")
        func withoutPlaces(_ text: String) -> String {
            text.split(separator: "\n").filter { !$0.contains("\"path\"") && !$0.contains("\"line\" : ") }.joined()
        }
        let documents = reports.map(\.json).joined()
        let lines = reports.map(\.line).joined()
        for (arguments, input) in [
            (["lines"], ""), (["lines/stalls.ndjson", "lines/stalls.ndjson.1"], ""), (["-"], documents),
            (["-"], lines),
            (["-"], documents.replacingOccurrences(of: "\n  ", with: "\n")),
            (reports.map { "directory/below/it/" + $0.fileName }, ""), (["/dev/stdin"], documents),
        ] as [([String], String)] {
            let result = try Tool.run(["top", "--json"] + arguments, input: input, in: scratch)
            #expect(withoutPlaces(result.output) == withoutPlaces(whole), "\(arguments)")
            #expect(result.errors == "")
        }
    }

    @Test func `the orders of show are known to top`() throws {
        let scratch = try folder()
        for (one, other) in [("last", "newest"), ("max", "longest")] {
            let results = try [one, other].map { try Tool.run(["top", ".", "--sort", $0], in: scratch) }
            #expect(results[0].status == 0 && results[0].output == results[1].output)
        }
    }

    @Test func theTableFitsTheTerminal() throws {
        var groups = StallGroups()
        let report = ReportFixture(
            function: String(repeating: "long", count: 50), file: "/src/" + String(repeating: "x", count: 90))
        groups.add(try ReportSummary(json: report.bytes), ReportOrigin(path: "x"))
        for width in [40, 60, 80, 100, 120, 200] {
            let text = TopTable(groups: groups, shown: groups.all).text(for: Terminal(isTerminal: true, width: width))
            #expect(text.split(separator: "\n").allSatisfy { String($0).columns <= width }, "\(width)")
        }
        let colored = TopTable(groups: groups, shown: groups.all).text(for: Terminal(isTerminal: true, hasColor: true))
        #expect(colored.contains("\u{1b}[1m"))
    }

    /// Runs on a pseudo-terminal that Python opens.
    @Test(
        arguments: [
            (["TERM": "xterm"], true), (["TERM": "xterm", "NO_COLOR": ""], true),
            (["TERM": "xterm", "NO_COLOR": "1"], false),
            (["TERM": "dumb"], false), ([:], false),
        ] as [([String: String], Bool)])
    func colorIsForTerminals(environment: [String: String], hasColors: Bool) throws {
        let scratch = try folder()
        var command = try Tool.command(["top", scratch.path], environment: environment)
        command.arguments =
            ["-c", "import pty, sys; pty.spawn(sys.argv[1:])", command.program] + command.arguments
        command.program = "/usr/bin/python3"
        let output = try command.run().output
        #expect(output.contains("index()"))
        #expect(output.contains("\u{1b}[1m") == hasColors)
    }

    @Test(arguments: [("always", true), ("auto", false), ("never", false)])
    func colorCanBeForced(color: String, hasColors: Bool) throws {
        for command in ["top", "show", "tree"] {
            let result = try Tool.run([command, ".", "--color", color], in: try folder())
            #expect(result.output.contains("\u{1b}[1m") == hasColors)
        }
    }

    @Test(arguments: [
        ("culprit", ["NoteStore.save(_:)", "index()"]), ("cause", ["lock", "cpu", "sleep"]),
        ("loop", ["main", "storage"]),
        ("caller", ["nil"]),
    ])
    func groupsCanHaveOtherKeys(key: String, values: [String]) throws {
        let result = try Tool.run(["top", ".", "--json", "--group-by", key], in: try folder())
        let object = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any]
        let groups = try #require(object?["groups"] as? [[String: Any]])
        let found = groups.map { group -> String in
            key == "culprit"
                ? (group[key] as? [String: Any])?["function"] as? String ?? "nil" : group[key] as? String ?? "nil"
        }
        #expect(Set(found) == Set(values) && found.count == values.count, "\(found)")
    }

    @Test func theCallerDistinguishesEqualCulprits() throws {
        for (number, caller) in ["Inbox.open()", "Search.run()"].enumerated() {
            let report = ReportFixture(number: number, fingerprint: "9f2c41d07a3be81\(number)")
            let named = "\"offset\": \"0x2f3a0\", \"function\": \"\(caller)\""
            try scratch.write(
                report.fileName, report.json.replacingOccurrences(of: "\"offset\": \"0x2f3a0\"", with: named))
        }
        let lines = try Tool.run(["top", "."], in: scratch).output.split(separator: "\n")
        #expect(lines[0].contains("culprit             called by"))
        #expect(lines.count { $0.contains("NoteStore.save(_:)  Inbox.open()") } == 1)
        #expect(lines.count { $0.contains("NoteStore.save(_:)  Search.run()") } == 1)
    }

    @Test func `callers distinguish groups at the first depth where they differ`() throws {
        func groups(_ chains: [[String]]) throws -> [StallGroup] {
            var groups = StallGroups()
            for (number, callers) in chains.enumerated() {
                let report = ReportFixture(number: number, fingerprint: "9f2c41d07a3be81\(number)")
                var summary = try ReportSummary(json: report.bytes)
                summary.callers = callers
                groups.add(summary, .init(path: "x"))
            }
            return groups.all.sorted { ($0.key ?? "") < ($1.key ?? "") }
        }
        func callers(_ chains: [[String]]) throws -> [String] {
            let groups = try groups(chains)
            return groups.map { TopTable.distinctCaller(of: $0, among: groups) }
        }
        #expect(try callers([["fetch", "open"], ["fetch", "close"]]) == ["open", "close"])
        #expect(try callers([["fetch", "open"], ["get", "open"]]) == ["fetch", "get"])
        #expect(try callers([["fetch", "open"], ["fetch"]]) == ["open", "fetch"])
        #expect(try callers([["fetch"], ["fetch"], []]) == ["fetch", "fetch", "-"])
        #expect(try callers([["fetch"]]) == [""])
    }

    @Test(arguments: [(nil, 20), (24, 18), (50, 44), (5, 3)] as [(Int?, Int)])
    func `a terminal gets as many groups as it has lines for`(height: Int?, groups: Int) {
        #expect(TopTable.limit(for: Terminal(isTerminal: height != nil, width: 80, height: height)) == groups)
    }

    @Test func `COLUMNS limits lines where no terminal does`() throws {
        let scratch = try folder()
        let lines = try Tool.run(["top", "."], in: scratch, environment: ["COLUMNS": "60"]).output
            .split(separator: "\n")
        #expect(lines.allSatisfy { String($0).columns <= 60 })
        for title in ["count", "cause", "culprit"] { #expect(lines[0].contains(title)) }
        #expect(lines[0].hasSuffix("id"))
        for wrong in ["0", "-3", "wide", ""] {
            let output = try Tool.run(["top", "."], in: scratch, environment: ["COLUMNS": wrong]).output
            #expect(output.hasPrefix("share  count    total     p50"), "\(wrong)")
        }
    }

    @Test(arguments: ["9f2c41d0", "000000000002", "01936c1e-7a52-7c3e-9d0e-000000000002"])
    func `show takes the digits that top shows`(digits: String) throws {
        let scratch = try folder()
        let result = try Tool.run(["show", ".", digits, "--all"], in: scratch)
        #expect(result.output.contains("\nreport      \(ReportFixture(number: 2).id), "), "\(result)")
        let none = try Tool.run(["show", ".", "ffffffff"], in: scratch)
        let words = "none has the fingerprint or the id 'ffffffff'"
        #expect(none.status == 1 && none.errors == "Error: No report matches: \(words).\n")
        try scratch.write([ReportFixture(number: 7)], in: "stalls/")
        #expect(try Tool.run(["show", "9f2c41d0", "--all"], in: scratch).output.contains(ReportFixture(number: 7).id))
    }

    @Test func `a locale without UTF-8 gets ASCII`() throws {
        let scratch = try folder()
        for command in ["top", "show", "tree"] {
            let result = try Tool.run([command, "."], in: scratch, environment: ["LC_ALL": "C", "COLUMNS": "60"])
            #expect(result.status == 0 && result.output.utf8.allSatisfy { $0 < 0x80 }, "\(result.output)")
        }
    }

    @Test func theRestIsCounted() throws {
        try scratch.write((10..<40).map { ReportFixture(number: $0, fingerprint: "9f2c41d07a3be8\($0)") })
        let output = try Tool.run(["top", "."], in: scratch).output
        #expect(output.contains("\n…and 10 more with 33 % of the time: --limit 30 shows all.\n"))
        // Equal in the first 8 digits, so all are shown.
        #expect(output.contains("9f2c41d07a3be810\n"))
        #expect(try !Tool.run(["top", ".", "--limit", "30"], in: scratch).output.contains("…and"))
    }
}
