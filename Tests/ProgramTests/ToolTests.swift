import Foundation
import StallWatch
import TestSupport
import Testing

@testable import StallWatchCLI

/// Any number of reports, one per line: 200 kinds of stalls, a few of which are most frequent.
enum ToolReports {
    /// A function that is on the stacks of every third kind.
    static let function = "Store.third()"

    /// Writes the reports from number `first` up to number `end`; kinds are counted from `firstKind`.
    static func write(_ end: Int, from first: Int = 0, firstKind: Int = 0, to path: String) throws {
        var lines = ""
        for number in first..<end {
            // 0, 0, 1, 0, 1, 2, 0, 1, 2, 3 and so on: the first kinds most often.
            let row = Int((Double(2 * number) + 0.25).squareRoot() - 0.5)
            let kind = (firstKind + number - row * (row + 1) / 2) % 200
            lines += line(number, kind: kind, milliseconds: 250 + (number * 7_919) % 9_000)
        }
        try lines.write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func line(_ number: Int, kind: Int, milliseconds: Int) -> String {
        let causes = ["cpu", "lock", "io", "sleep"]
        let names = [
            "libc.wait", kind % 3 == 1 ? function : "Store.other()", "Kind\(kind).work()", "Loop.run()", "main",
        ]
        let frames = names.enumerated().map { place, name in
            """
            {"image":0,"offset":"0x\(String(4_096 + kind * 64 + place, radix: 16))","function":"\(name)","line":\(place + 1),\
            "file":"Sources/\(place).swift","isInApp":\(place > 0),"kind":"code"}
            """
        }
        func twoDigits(_ value: Int) -> String { (value < 10 ? "0" : "") + String(value) }
        let time = [number / 3_600 % 24, number / 60 % 60, number % 60].map(twoDigits).joined(separator: ":")
        return """
            {"schemaVersion":1,"id":"019a0000-0000-7000-8000-\(String(1_000_000_000_000 + number).dropFirst())","kind":"stall",\
            "state":"ended","startedAt":"2026-11-21T\(time).000000Z","durationMilliseconds":\(milliseconds).125,\
            "thresholdMilliseconds":250,"process":{"name":"notes","pid":7,"executable":"/opt/notes","architecture":"x86_64",\
            "kernel":"6","hostname":"h\(number % 3)"},"metadata":{"version":"1.4.2"},"loop":{"label":"\(kind % 2 == 0 ? "main" : "storage")",\
            "kind":"runLoop","turn":\(number),"nesting":0,"thread":{"id":\(kind % 2 == 0 ? 7 : 8)}},\
            "fingerprint":"\(String(UInt64(kind + 1) &* 0x9e37_79b9_7f4a_7c15, radix: 16))","repeats":\(number % 3),\
            "culprit":{"function":"Kind\(kind).work()","image":"notes","file":"Sources/Kind.swift","line":\(kind)},\
            "cause":{"kind":"\(causes[kind % 4])","summary":"Blocked for \(milliseconds) of \(milliseconds) ms.",\
            "confidence":"certain","onCPUMilliseconds":1,"runQueueMilliseconds":0,"blockedMilliseconds":\(milliseconds),\
            "uncertaintyMilliseconds":0,"minorFaults":0,"majorFaults":0,"voluntarySwitches":1,"involuntarySwitches":0},\
            "samples":[{"atMilliseconds":250,"stack":0,"isValid":true,"isComplete":true,"heldMicroseconds":0,\
            "captureMicroseconds":90}],"stacks":[[0,1,2,3,4]],"frames":[\(frames.joined(separator: ","))],\
            "images":[{"name":"notes","path":"/opt/notes","buildID":"ab01","baseAddress":"0x1000"}],\
            "monitor":{"version":"0.1.0","watchdogLateMilliseconds":0,"suppressed":{}}}\n
            """
    }
}

/// The complete messages of `tree`, `export` and `html` for wrong command lines.
@Suite struct ToolUsageTests {
    /// The end of every message.
    private static func usage(_ command: String, _ form: String = "[<options>] <path> ...") -> String {
        "Usage: stallwatch \(command) \(form)\n  See 'stallwatch \(command) --help' for more information.\n"
    }

    private static let wrong: [(line: String, text: String, status: Int32)] = [
        (
            "tree x --minimum 101",
            "Error: --minimum is 101.0, but has to be between 0 and 100 percent.\n" + usage("tree"), 2
        ),
        (
            "tree x --minimum much",
            "Error: The value 'much' is invalid for '--minimum <percent>'\n"
                + "Help:  --minimum <percent>  Leave out functions with less than this share of all stalled time.\n"
                + usage("tree"), 2
        ),
        (
            "tree x --top-down --bottom-up",
            "Error: Value to be set with flag '--bottom-up' had already been set with flag '--top-down'\n"
                + usage("tree"), 2
        ),
        (
            "export x",
            "Error: Missing expected argument '--format <format>'\n"
                + "Help:  --format <format>  collapsed, pprof or firefox.\n"
                + usage("export", "[<options>] <path> ... --format <format>"), 2
        ),
        (
            "export x --format svg",
            "Error: The value 'svg' is invalid for '--format <format>'. Please provide one of "
                + "'collapsed', 'pprof' or 'firefox'.\n"
                + "Help:  --format <format>  collapsed, pprof or firefox.\n"
                + usage("export", "[<options>] <path> ... --format <format>"), 2
        ),
        (
            "html x",
            "Error: Missing expected argument '--output <file>'\n"
                + "Help:  --output <file>  The file to write, or - for standard output.\n"
                + usage("html", "[<options>] <path> ... --output <file>"), 2
        ),
        ("html x -o ''", "Error: The output path is empty. Name a file.\n", 73),
        ("html x -o /dev/full", "Error: /dev/full is not a regular file. Name another file for the output.\n", 73),
        ("tree /none", "Error: /none cannot be read: No such file or directory\n", 1),
    ]

    @Test(arguments: wrong) func wrongCommandLinesAreExplained(line: String, text: String, status: Int32) throws {
        let output = try Tool.shell("\"$TOOL\" \(line)")
        #expect(output.text == text)
        #expect(output.status == status)
    }
}

/// Other programs read the output of `stallwatch export`.
@Suite(.serialized) struct ToolExportTests {
    private let directory = TemporaryDirectory.ofTest()

    private static let formats = ["collapsed", "pprof", "firefox"]

    @Test func otherToolsReadEachFormat() throws {
        let reports = directory.path + "/reports"
        try Tool.runScenarios(into: reports)
        let top = try Tool.decode(Tool.Top.self, Tool.run(["top", reports, "--json"]))
        let tree = try Tool.decode(
            Tool.Tree.self, Tool.run(["tree", reports, "--json", "--all-frames", "--minimum", "0"]))
        #expect(tree.totalMilliseconds == top.totalMilliseconds)
        let spinning = tree.milliseconds(of: Tool.spinning)
        #expect(spinning > 250 && spinning < top.totalMilliseconds)
        for format in Self.formats {
            try Tool.run(["export", reports, "--format", format, "--output", "\(directory.path)/\(format)"])
        }
        let microseconds = [top.totalMilliseconds, spinning].map { Int(($0 * 1_000).rounded()) }
        let read = try Tool.reader(
            "read-profiles.py", [directory.path, String(microseconds[0]), Tool.spinning, String(microseconds[1])]
        )
        #expect(read.status == 0, "\(read.text)")
        #expect(read.text.split(separator: "\n").map(String.init) == Self.formats.map { "\($0): read" })

        // The readers find a wrong file.
        let wrong = try Tool.reader(
            "read-profiles.py", [directory.path, String(microseconds[0] + 1), Tool.spinning, String(microseconds[1])]
        )
        #expect(wrong.status == 1)
        #expect(!wrong.text.contains(": read"), "\(wrong.text)")
    }

    @Test(arguments: formats)
    func closedOrFullStandardOutput(format: String) throws {
        try ToolReports.write(300, to: directory.path + "/reports.ndjson")
        let command = "\"$TOOL\" export \(directory.path) --format \(format)"
        #expect(try Tool.shell("set -o pipefail; \(command) | head -c 1 >/dev/null").status == 0)
        let full = try Tool.shell("\(command) >/dev/full")
        #expect(full.status == 74)
        #expect(full.text == "Error: standard output cannot be written: No space left on device\n")
    }

    @Test func anEmptyExportKeepsTheOldFile() throws {
        try ToolReports.write(3, to: directory.path + "/reports.ndjson")
        let file = directory.path + "/old"
        try "old".write(toFile: file, atomically: true, encoding: .utf8)
        let output = try Tool.shell("\"$TOOL\" export \(directory.path) --format collapsed --min 1d -o \(file)")
        #expect(output.status == 1)
        #expect(output.text == "Error: No report matches: 3 reports were read.\n")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "old")
        #expect(directory.names == ["old", "reports.ndjson"])
    }
}

/// Other programs read what `show`, `top` and `diff` print for issues and CI systems.
@Suite struct ToolFormatTests {
    private static let files = [("md", "markdown"), ("xml", "junit"), ("txt", "github")]

    @Test func otherToolsReadEachFormat() throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        try Tool.runScenarios(into: reports)
        try FileManager.default.createDirectory(atPath: directory.path("before"), withIntermediateDirectories: true)
        let commands = [
            ["show", reports, "--function", Tool.spinning], ["top", reports],
            ["diff", directory.path("before"), reports],
        ]
        for command in commands {
            for (suffix, format) in Self.files {
                let text = try Tool.run(command + ["--format", format])
                try Data(text.utf8).write(to: URL(fileURLWithPath: directory.path("\(command[0]).\(suffix)")))
            }
        }
        let read = try Tool.reader("read-formats.py", [directory.path, Tool.spinning])
        #expect(read.status == 0, "\(read.text)")
        #expect(read.output.split(separator: "\n").count == 9)

        // The readers find a wrong file.
        let wrong = try Tool.reader("read-formats.py", [directory.path, "another function"])
        #expect(wrong.status == 1, "\(wrong.text)")
    }
}

/// The tool reads the statistics that a monitor writes.
@Suite struct ToolStatisticsTests {
    @Test func statisticsOfAMonitorAreRead() throws {
        let scratch = try TemporaryDirectory()
        let path = scratch.path + "/statistics.json"
        var configuration = StallMonitor.Configuration(outputs: [.directory(scratch.path + "/stalls")])
        configuration.outputs.append(.statistics(path))
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        monitor.stop()
        let sum = try StatisticsSum(of: [path])
        #expect(sum.files == 1)
        #expect(sum.total == monitor.statistics)
    }
}

/// The recipes of `docs/jq.md`, run on real reports.
@Suite struct JQRecipeTests {
    private struct Culprit: Decodable {
        let culprit: String?
        let milliseconds: Double
    }

    /// The page's commands.
    private static func recipes() throws -> [String] {
        let page = try String(contentsOf: Repository.root.appendingPathComponent("docs/jq.md"), encoding: .utf8)
        return page.components(separatedBy: "```sh\n").dropFirst().compactMap {
            $0.components(separatedBy: "```").first
        }
    }

    @Test func everyRecipePrintsAnAnswer() throws {
        let directory = try TemporaryDirectory()
        try Tool.runScenarios(into: directory.path("stalls"))
        let recipes = try Self.recipes()
        #expect(recipes.count == 8)
        for recipe in recipes {
            let output = try Tool.shell(
                "set -o pipefail; cd \(directory.path); PATH=$(dirname \"$TOOL\"):$PATH\n\(recipe)")
            #expect(output.status == 0, "\(recipe)\(output.text)")
            #expect(!output.text.isEmpty, "\(recipe)")
        }
        let sum = try #require(recipes.first { $0.contains("sort_by(-.milliseconds)") })
        let culprits = try Tool.decode([Culprit].self, Tool.shell("cd \(directory.path); \(sum)").text)
        #expect(culprits.contains { $0.culprit == Tool.spinning })
        let top = try Tool.decode(Tool.Top.self, Tool.run(["top", directory.path("stalls"), "--json"]))
        #expect(abs(culprits.reduce(0) { $0 + $1.milliseconds } - top.totalMilliseconds) < 0.01)
    }
}

/// Names that mean something to terminals, pages, Markdown, XML and CI systems go through every command and format.
@Suite struct ToolHostileNamesTests {
    @Test func `real readers see only text`() throws {
        let directory = try TemporaryDirectory()
        try DetailedReport.write(to: directory.path, loops: 0)
        let names = try directory.write("names.json", [UInt8](JSONEncoder().encode(HostileNames.make(5_000, seed: 36))))
        let read = try Tool.reader(
            "read-hostile-names.py",
            [Command.product("stallwatch"), directory.path("reports.ndjson"), names])
        #expect(read.status == 0, "\(read.text)")
        #expect(read.output.split(separator: "\n").count == 4, "\(read.text)")
    }
}
