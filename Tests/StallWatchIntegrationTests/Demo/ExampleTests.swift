import Foundation
import TestSupport
import Testing

@testable import StallReports

/// The examples build as separate packages and work as documented.
@Suite(.serialized) struct ExampleTests {
    private static let examples = Repository.root.appendingPathComponent("Examples")

    private static var hasGLib: Bool {
        guard let program = Command.find("pkg-config") else { return false }
        return (try? Command(program: program, arguments: ["--exists", "glib-2.0"]).run().status) == 0
    }

    @Test(.enabled(if: hasGLib, "the headers of GLib are not installed"))
    func aStallOfAGLibLoopInCIsReported() throws {
        let package = Self.examples.appendingPathComponent("glib-loop").path
        let swift = try #require(Command.find("swift"))
        let build = ["build", "--package-path", package, "--product", "glib-loop"]
        try Command(program: swift, arguments: build).succeed()
        let products = try Command(program: swift, arguments: build + ["--show-bin-path"]).succeed()
            .trimmingCharacters(in: .whitespacesAndNewlines)

        let directory = try TemporaryDirectory()
        let reports = directory.path("reports")
        let output = try Command(program: "\(products)/glib-loop", arguments: [reports]).succeed()
        let files = try FileManager.default.contentsOfDirectory(atPath: reports).filter { $0.hasSuffix(".json") }
        let file = try #require(files.first)
        #expect(files.count == 1)
        let data = try Data(contentsOf: URL(fileURLWithPath: reports).appendingPathComponent(file))
        let report = try StallReport(jsonData: [UInt8](data))
        #expect(output.contains(report.summary))
        #expect(report.loop.kind == .probe)
        #expect(report.culprit?.function == "work_for_too_long")
        #expect(report.state == .ended)
        #expect(abs(report.durationMilliseconds - 300) < 15)
    }
}
