import Foundation
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct SymbolicateTests {
    private let scratch = TemporaryDirectory.ofTest()

    /// A report whose one frame lies in the tool itself, which this test has built.
    private func report(in scratch: TemporaryDirectory) throws -> (path: String, report: ReportFixture) {
        let fixture = ReportFixture(number: 1)
        let text = fixture.json
            .replacingOccurrences(of: "\"path\": \"/opt/notes/bin/notes\"", with: "\"path\": \"/gone/notes\"")
        return (try scratch.write(fixture.fileName, text), fixture)
    }

    @Test func missingNamesAreListed() throws {
        let (path, fixture) = try report(in: scratch)
        let result = try Tool.run(["symbolicate", path])
        let named = try StallReport(jsonData: Array(result.output.utf8))
        #expect(named.id == fixture.id)
        let lines = result.errors.split(separator: "\n").map(String.init)
        #expect(lines.first == "Some names or lines were not found:")
        #expect(lines.last == "1 report, 4 of 5 frames have a name.")
        #expect(
            lines.contains { $0.hasPrefix("notes  3b1e            1        1  its file: No such file or directory") })
        #expect(result.status == 0)
    }

    @Test func severalReportsArePrintedOnePerLine() throws {
        try scratch.write((1...3).map { ReportFixture(number: $0) })
        let result = try Tool.run(["symbolicate", scratch.path])
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output.split(separator: "\n").count == 3)
        let top = try Tool.run(["top", "-", "--json"], input: result.output)
        #expect(top.output.contains("\"reports\" : 3") && top.errors == "", "\(top)")
    }

    @Test func reportsAreWrittenElsewhereOrReplaced() throws {
        let (path, fixture) = try report(in: scratch)
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        let elsewhere = try Tool.run(["symbolicate", ".", "--output", "named", "--json"], in: scratch)
        #expect(elsewhere.errors == "" && elsewhere.output.contains("\"unnamedFrames\" : 1"), "\(elsewhere)")
        let written = scratch.path + "/named/" + fixture.fileName
        _ = try StallReport(jsonData: Array(Data(contentsOf: URL(fileURLWithPath: written))))
        #expect(try FileManager.default.attributesOfItem(atPath: written)[.posixPermissions] as? Int == 0o600)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)

        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: path)
        let inPlace = try Tool.run(["symbolicate", path, "--in-place"])
        #expect(inPlace.status == 0 && inPlace.output.hasPrefix("Some names or lines were not found:\n"), "\(inPlace)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) != before)
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o640)
        #expect(scratch.names == ["named", fixture.fileName])
    }

    @Test func linesCannotBeReplacedInPlace() throws {
        try scratch.write("stalls.ndjson", ReportFixture().line)
        let result = try Tool.run(["symbolicate", "stalls.ndjson", "--in-place"], in: scratch)
        #expect(result.errors == "Error: stalls.ndjson may hold several reports: use --output instead of --in-place.\n")
        #expect(result.status == 73)
    }

    @Test func anUncreatableDirectoryIsNamed() throws {
        try scratch.write([ReportFixture()])
        let result = try Tool.run(["symbolicate", ".", "--output", "a/b"], in: scratch)
        #expect(result.errors == "Error: a/b cannot be written: No such file or directory\n")
        #expect(result.status == 73)
    }

    @Test(arguments: ["symbolicate", "top", "show"])
    func `a report whose id is no UUID is refused`(command: String) throws {
        let fixture = ReportFixture(number: 1)
        // The last twelve signs of the id are part of the file's name.
        let wrong = String(fixture.id.dropLast(12)) + "/../../../ab"
        try scratch.write("reports/stall-1.json", fixture.json.replacingOccurrences(of: fixture.id, with: wrong))
        let options = command == "symbolicate" ? ["--output", "named"] : []
        let result = try Tool.run([command, "reports"] + options, in: scratch)
        #expect(result.status == 65 && result.errors.contains("an id is a UUID in lowercase"), "\(result)")
        #expect(scratch.names.allSatisfy { ["named", "reports"].contains($0) })
    }
}
