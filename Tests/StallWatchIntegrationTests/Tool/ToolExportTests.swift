import Foundation
import TestSupport
import Testing

/// Other programs read the output of `stallwatch export`.
@Suite(.serialized) struct ToolExportTests {
    private static let formats = ["collapsed", "speedscope", "pprof", "firefox", "perf", "perfetto"]

    @Test func otherToolsReadEachFormat() throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path + "/reports"
        try Tool.stallDemo(into: reports)
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
        let directory = try TemporaryDirectory()
        try ToolReports.write(300, to: directory.path + "/reports.ndjson")
        let command = "\"$TOOL\" export \(directory.path) --format \(format)"
        #expect(try Tool.shell("set -o pipefail; \(command) | head -c 1 >/dev/null").status == 0)
        let full = try Tool.shell("\(command) >/dev/full")
        #expect(full.status == 74)
        #expect(full.text == "Error: standard output cannot be written: No space left on device\n")
    }

    @Test func anEmptyExportKeepsTheOldFile() throws {
        let directory = try TemporaryDirectory()
        try ToolReports.write(3, to: directory.path + "/reports.ndjson")
        let file = directory.path + "/old"
        try "old".write(toFile: file, atomically: true, encoding: .utf8)
        let output = try Tool.shell(
            "\"$TOOL\" export \(directory.path) --format perf --min 1d -o \(file)")
        #expect(output.status == 66)
        #expect(output.text == "Error: No report matches, so there is nothing to export.\n")
        #expect(try String(contentsOfFile: file, encoding: .utf8) == "old")
        #expect(directory.names == ["old", "reports.ndjson"])
    }
}
