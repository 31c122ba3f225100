import Foundation
import TestSupport
import Testing

/// Other programs read what `show`, `top` and `diff` print for issues and CI systems.
@Suite struct ToolFormatTests {
    private static let files = [("md", "markdown"), ("xml", "junit"), ("txt", "github")]

    @Test func otherToolsReadEachFormat() throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        try Tool.stallDemo(into: reports)
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
