import Foundation
import StallReports
import Glibc
import Testing
import TestSupport

@testable import StallWatchCLI

@Suite struct ReadReportsTests {
    private let scratch = TemporaryDirectory.ofTest()

    /// A directory next to its NDJSON file, as production set-ups have them.
    @Test(arguments: [["top"], ["show"], ["tree"], ["export", "--format", "collapsed"]])
    func aReportThatIsGivenTwiceCountsOnce(command: [String]) throws {
        let reports = (1...3).map { ReportFixture(number: $0) }
        try scratch.write(reports, in: "once/")
        try scratch.write(reports, in: "twice/")
        try scratch.write("twice/stalls.ndjson", reports.map(\.line).joined())
        let once = try Tool.run(command + ["once"], in: scratch)
        let twice = try Tool.run(command + ["twice"], in: scratch)
        #expect(twice.output == once.output.replacingOccurrences(of: "once", with: "twice"))
        #expect(twice.status == 0 && twice.errors == "3 reports were given twice and counted once.\n", "\(twice)")
    }

    @Test(
        arguments: [
            (
                ["--cause", "boredom"],
                "--cause: no report has 'boredom'. The values are: continuation, cpu, cpuContention, deadlock, io, ", 2
            ),
            (
                ["--kind", "stal"],
                "--kind: no report has 'stal'. The values are: later, modeStarvation, notRun, overdue, pinned, saturation, spinning, stall, starvation.",
                2
            ),
            (["--loop", "man"], "--loop: no report has 'man'. The values are: main, storage.", 1),
        ] as [([String], String, Int32)])
    func unknownValuesNameThoseThatExist(arguments: [String], message: String, status: Int32) throws {
        try scratch.write([ReportFixture(number: 1), ReportFixture(number: 2, kind: "later", loop: "storage")])
        for command in ["top", "show", "tree"] {
            let result = try Tool.run([command, "."] + arguments, in: scratch)
            #expect(result.errors.hasPrefix("Error: " + message))
            #expect(result.status == status && result.output == "", "\(result)")
        }
    }

    /// A file may be rotated by its number or its day; a compressed one is not read as text.
    @Test func rotatedFilesAreRead() throws {
        for (number, name) in ["ndjson", "ndjson.1", "ndjson-20261127", "ndjson.2026-11-27", "jsonl.12"].enumerated() {
            try scratch.write("stalls.\(name)", ReportFixture(number: number + 1).line)
        }
        for other in ["2.gz", "1.sha256", "bak"] {
            try scratch.write("stalls.ndjson.\(other)", [0x1f, 0x8b, 0x08] as [UInt8])
        }
        #expect(try Tool.run(["top", ".", "--json"], in: scratch).output.contains("\"reports\" : 5"))
    }

    /// A word that a newer version has added is not a mistake.
    @Test func aValueOfAReportIsKnown() throws {
        try scratch.write([ReportFixture(number: 1, kind: "later", cause: "gravity")])
        #expect(try Tool.run(["top", ".", "--cause", "gravity", "--kind", "later"], in: scratch).status == 0)
    }
}

@Suite struct BadInputTests {
    private let scratch = TemporaryDirectory.ofTest()

    /// Commands that read reports, up to the paths.
    private static let readers = [["show"], ["top"], ["symbolicate"], ["top", "--json"], ["show", "--json"]]

    @Test(arguments: readers + [["stats"], ["tail"], ["tree"], ["export", "--format", "pprof"]])
    func aMissingPathIsNamed(command: [String]) throws {
        let result = try Tool.run(command + ["nowhere"], in: try TemporaryDirectory())
        #expect(
            result.errors
                == "Error: nowhere cannot be read: No such file or directory. Give a folder or a file that is there\n")
        #expect(result.status == 2 && result.output == "", "\(result)")
    }

    @Test func `an empty path is seen in the message`() throws {
        let result = try Tool.run(["top", ""], in: try TemporaryDirectory())
        #expect(
            result.errors
                == "Error: '' cannot be read: No such file or directory. Give a folder or a file that is there\n"
                && result.status == 2)
    }

    @Test(arguments: ["run", "test"])
    func `an empty name of the reports' directory is refused`(command: String) throws {
        let result = try Tool.run([command, "--output", "", "--", "true"], in: try TemporaryDirectory())
        #expect(result.errors.hasPrefix("Error: The value '' of --output is empty: name a directory.\n"))
        #expect(result.status == 2)
    }

    @Test(arguments: readers.filter { $0 != ["top", "--json"] })
    func `a directory without reports is no error`(command: [String]) throws {
        try scratch.write("package.json", "{}")
        try scratch.write("stall-baseline.json", "{}")
        let result = try Tool.run(command + ["."], in: scratch)
        let left = "Not read: 1 JSON file whose name does not begin with stall-."
        #expect(result.errors.hasPrefix("No stalls in ./. \(left)\n"), "\(result)")
        #expect(result.status == 0 && result.output == "", "\(result)")
    }

    /// An empty file is neither JSON nor XML, and a job that reads it fails on the good days.
    @Test(
        arguments: [
            (["top", "--json"], #""groups" : ["#), (["top", "--history", "--json"], #""versions" : ["#),
            (["tree", "--json"], #""nodes" : ["#), (["top", "--format", "junit"], #"name="no stalls""#),
            (["show", "--format", "junit"], #"name="no stalls""#),
        ] as [([String], String)])
    func `without reports a document is still one`(command: [String], part: String) throws {
        for place: [String] in [[], ["."]] {
            let result = try Tool.run(command + place, in: scratch)
            #expect(result.status == 0 && result.output.contains(part), "\(result)")
            #expect(result.errors.hasPrefix("No stalls in "), "\(result)")
        }
    }

    @Test func `no stalls: which processes are watched is said`() {
        var loop = LoopStatistics(label: "main")
        loop.threshold = .milliseconds(250)
        loop.latency = [.init(upperBound: .milliseconds(180), turns: 3)]
        let none = NoStalls(paths: ["stalls", "-", "/dev/null"])
        #expect(none.text([]) == "No stalls in stalls/, standard input, /dev/null.\nNo process has a monitor now.\n")
        let text = none.text([(4700, "notes"), (4701, "other")]) { $0 == 4700 ? [loop] : nil }
        #expect(text.contains("\nnotes (4700) has a monitor; main: longest turn 180 ms of 250 ms.\n"), "\(text)")
        #expect(text.hasSuffix("\nother (4701) has a monitor.\n"), "\(text)")
    }

    @Test func `a path wins over digits, and digits over a path that is not there`() {
        func words(_ words: String..., there: Set<String> = []) -> [[String]] {
            let selected = SelectedWords(words, isThere: there.contains)
            return [selected.paths, selected.digits, selected.rows.map(String.init)]
        }
        #expect(words("9f2c", "12", "-", "old", "2026-11") == [["-", "old"], ["9f2c", "2026-11"], ["12"]])
        #expect(words("9f2c", "12", "old", there: ["9f2c", "12"]) == [["9f2c", "12", "old"], [], []])
        // Too few digits for an id, and no row.
        #expect(words("9f2", "") == [["9f2", ""], [], []])
        #expect(words("1234") == [[], ["1234"], []])
    }

    @Test func `a row of top names its reports`() throws {
        try scratch.write(
            [
                ReportFixture(number: 1, milliseconds: 300),
                ReportFixture(number: 2, milliseconds: 900, fingerprint: "b2c41d07a3be8159"),
            ], in: "stalls/")
        func shown(_ words: String...) throws -> String { try Tool.run(["show", "--all"] + words, in: scratch).output }
        #expect(try shown("1").contains("\nfingerprint b2c41d07a3be8159\n"))
        #expect(try shown("stalls", "2").contains("\nfingerprint 9f2c41d07a3be815\n"))
        let three = try Tool.run(["tree", "3"], in: scratch)
        #expect(three.status == 1 && three.errors == "Error: There is no row 3: top has 2 rows.\n", "\(three)")
        #expect(try Tool.run(["show", "0"], in: scratch).errors == "Error: There is no row 0: top has 2 rows.\n")
        try scratch.write("2/none.txt", "")
        #expect(try Tool.run(["show", "2"], in: scratch).errors.hasPrefix("No stalls in 2/.\n"), "a path wins")
    }

    @Test(arguments: readers)
    func aBrokenFileIsNamedAndSkipped(command: [String]) throws {
        try scratch.write([ReportFixture(number: 1), ReportFixture(number: 2)])
        try scratch.write("stall-broken.json", String(ReportFixture().json.prefix(100)))
        try scratch.write("stall-rubbish.json", (0..<200).map { UInt8($0) })
        let result = try Tool.run(command + ["."], in: scratch)
        let lines = result.errors.split(separator: "\n")
        #expect(lines.count { $0.hasPrefix("Skipped ./stall-broken.json: ") } == 1)
        #expect(lines.count { $0.hasPrefix("Skipped ./stall-rubbish.json: ") } == 1)
        #expect(lines.contains("2 reports were skipped, 2 read."))
        // `show` has the sentence, the others an id.
        #expect(["01936c1e", "9f2c41d0", "writeWAL()"].contains(where: result.output.contains))
        #expect(result.status == 0)

        let strict = try Tool.run(command + [".", "--strict"], in: scratch)
        #expect(strict.status == 65 && strict.errors.hasSuffix("Error: 2 reports are faulty.\n"), "\(strict)")
    }

    @Test func `of many faulty reports ten are named`() throws {
        for number in 10..<40 { try scratch.write("stall-\(number).json", "{") }
        let lines = try Tool.run(["top", "."], in: scratch).errors.split(separator: "\n")
        #expect(lines.count { $0.hasPrefix("Skipped ./stall-") } == 10)
        let end = ["… and 20 more.", "30 reports were skipped, 0 read.", "Error: No report could be read."]
        #expect(lines.suffix(3) == end.map { $0[...] }[...], "\(lines)")
    }

    @Test(arguments: readers)
    func noReadableReportIsAnError(command: [String]) throws {
        try scratch.write("stall-1.json", "{")
        let result = try Tool.run(command + ["."], in: scratch)
        #expect(result.errors.hasSuffix("1 report was skipped, 0 read.\nError: No report could be read.\n"))
        #expect(result.status == 65 && result.output == "", "\(result)")
    }

    @Test func `a baseline beside reports is none`() throws {
        try scratch.write([ReportFixture()])
        #expect(try Tool.run(["baseline", "update", "."], in: scratch).status == 0)
        #expect(try Tool.run(["top", ".", "--strict"], in: scratch).status == 0)
        #expect(try Tool.run(["baseline", "update", ".", "--strict"], in: scratch).status == 0)
    }

    @Test(arguments: ["tree", "show", "top", "export", "stats"])
    func `a count that no one can have is refused`(command: String) throws {
        try scratch.write([ReportFixture(number: 1, repeats: .max)])
        let options = command == "export" ? ["--format", "pprof", "-o", scratch.path("out")] : []
        let result = try Tool.run([command, "."] + options, in: scratch)
        #expect(result.status == (command == "stats" ? 1 : 65), "\(result)")
    }

    @Test func eachSkippedReportHasAReason() throws {
        let good = ReportFixture().json
        for (name, text, reason) in [
            (
                "newer", good.replacingOccurrences(of: "\"schemaVersion\": 1", with: "\"schemaVersion\": 2"),
                "the report has schema version 2, and this version reads up to 1: use a newer StallWatch"
            ),
            ("empty", "", "this is not a stall report: not JSON: the file is empty"),
            (
                "cut", String(good.prefix(900)),
                "this is not a stall report: not JSON: it ends in the middle of a value: the file was cut off"
            ),
            (
                "list", "[]",
                "this is not a stall report: Expected to decode Dictionary<String, Any> but found an array instead"
            ),
            ("other", "{\"a\": 1}", "this is not a stall report: schemaVersion is missing"),
            (
                "time", good.replacingOccurrences(of: "2026-11-21T08:00:00.123456Z", with: "noon"),
                "this is not a stall report: $.startedAt: \"noon\" is not a time like 2026-11-21T08:00:00.123456Z"
            ),
            (
                "control", good.replacingOccurrences(of: "\"ended\"", with: "\"\u{1}\""),
                "this is not a stall report: not JSON: Unescaped control character around character 103"
            ),
        ] {
            let path = try scratch.write("\(name).json", text)
            let result = try Tool.run(["top", path])
            #expect(result.errors.split(separator: "\n").first.map(String.init) == "Skipped \(path): \(reason)")
            #expect(result.status == 65)
        }
        let huge = scratch.path + "/huge.json"
        #expect(FileManager.default.createFile(atPath: huge, contents: nil))
        #expect(truncate(huge, 50 << 30) == 0)
        let result = try Tool.run(["top", huge])
        #expect(result.errors.hasPrefix("Skipped \(huge): it has 53687091200 bytes, and the limit is 16777216\n"))
    }

    @Test(.enabled(if: geteuid() != 0, "root may read every directory"))
    func anUnreadableDirectoryIsNamed() throws {
        try scratch.write([ReportFixture(number: 1)], in: "open/")
        try scratch.write([ReportFixture(number: 2)], in: "closed/")
        chmod(scratch.path + "/closed", 0)
        defer { chmod(scratch.path + "/closed", 0o700) }
        let below = try Tool.run(["top", "."], in: scratch)
        #expect(below.errors == "Skipped ./closed: Permission denied\n1 report was skipped, 1 read.\n")
        #expect(below.status == 0)
        let named = try Tool.run(["top", "closed"], in: scratch)
        #expect(named.status == 77 && named.errors == "Error: closed cannot be read: Permission denied\n", "\(named)")
    }

    /// A file has each wrong command line with the first line of its message: what is wrong.
    @Test func `a wrong command line is refused with a sentence`() throws {
        let file = Repository.root.appendingPathComponent("Tests/StallWatchCLITests/Texts/usage.txt")
        let expected = try String(contentsOf: file, encoding: .utf8)
        var text = ""
        for line in expected.split(separator: "\n") where line.hasPrefix("$ stallwatch ") {
            let result = try Tool.run(line.split(separator: " ").dropFirst(2).map(String.init))
            #expect(result.output == "")
            #expect(result.status == 2 && result.errors.hasSuffix(" --help' for more information.\n"), "\(result)")
            text += "\(line)\n\(result.errors.prefix { $0 != "\n" })\n"
        }
        #expect(text == expected)
    }

    @Test(arguments: [["--\u{1b}[31m"], ["--since", "\u{1b}[31m"], ["--sort", "\u{1b}[31m"], ["\u{1b}[31m"]])
    func `a message has no controls of the command line`(words: [String]) throws {
        let result = try Tool.run(["top"] + words)
        #expect(result.status == 2 && result.errors.contains("\u{fffd}[31m"), "\(result)")
        #expect(!result.errors.contains("\u{1b}"))
    }

    private static let writers =
        [["top"], ["show"], ["symbolicate"], ["top", "--json"], ["tree"]]
        + ["collapsed", "pprof", "firefox"].map { ["export", "--format", $0] }

    /// Runs a command with that standard output; returns the status and the errors.
    private func run(_ command: [String], into output: FileHandle) throws -> (status: Int32, errors: String) {
        let process = try Tool.command(command + [scratch.path]).process()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        try process.run(atMost: Process.timeout)
        try output.close()
        try errors.fileHandleForWriting.close()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit)
        return (process.terminationStatus, text)
    }

    /// As under `| head -c 0`, and on a full disk.
    @Test(arguments: writers)
    func `a closed pipe is no error, and a full disk is one`(command: [String]) throws {
        try scratch.write((1...50).map { ReportFixture(number: $0, fingerprint: "9f2c41d07a3be8\($0 + 10)") })
        let pipe = Pipe()
        try pipe.fileHandleForReading.close()
        let closed = try run(command, into: pipe.fileHandleForWriting)
        #expect(closed.status == 0 && !closed.errors.contains("Error"), "\(closed)")
        let full = try run(command, into: try #require(FileHandle(forWritingAtPath: "/dev/full")))
        #expect(full.status == 74)
        #expect(full.errors.hasSuffix("Error: standard output cannot be written: No space left on device\n"))
    }

    @Test func controlCharactersAreNotPrinted() throws {
        try scratch.write([
            ReportFixture(fingerprint: "\\u001b]0;x\\u0007", function: "\\u001b[2Jclear", cause: "\\u009b31m")
        ])
        for command in ["top", "show"] {
            let result = try Tool.run([command, scratch.path])
            #expect(result.status == 0 && result.output.contains("\u{fffd}[2Jclear"), "\(result)")
            #expect(!result.output.unicodeScalars.contains { [0x07, 0x1b, 0x9b].contains($0.value) })
        }
    }
}
