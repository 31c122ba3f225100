import Foundation
import TestSupport
import Testing

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
