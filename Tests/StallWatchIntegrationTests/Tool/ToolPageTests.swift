import Foundation
import TestSupport
import Testing

/// The page of `stallwatch html` in a real browser: headless Chromium, used by keyboard.
@Suite(.serialized) struct ToolPageTests {
    /// Writes the page, opens it, and returns the measurements.
    private func open(_ reports: String, _ function: String, _ options: [String] = []) async throws -> Command.Output {
        let directory = try TemporaryDirectory()
        async let page = Tool.run(["html", reports, "-o", directory.path + "/page.html"])
        async let top = Tool.run(["top", reports, "--json"])
        try await top.write(toFile: directory.path + "/top.json", atomically: true, encoding: .utf8)
        _ = try await page
        return try Tool.reader(
            "open-page.py", [directory.path + "/page.html", directory.path + "/top.json", function] + options)
    }

    @Test func realReportsInLightAndDark() async throws {
        let directory = try TemporaryDirectory()
        try Tool.stallDemo(into: directory.path)
        for options in [[], ["--dark"]] {
            let page = try await open(directory.path, Tool.spinning, options)
            #expect(page.status == 0, "\(page.text)")
        }
    }

    @Test(arguments: [3, 20_000])
    func fewAndManyReports(count: Int) async throws {
        let directory = try TemporaryDirectory()
        try ToolReports.write(count, to: directory.path + "/reports.ndjson")
        let page = try await open(directory.path, ToolReports.function)
        #expect(page.status == 0, "\(page.text)")
        let figures = page.text.split { !$0.isNumber }.compactMap { Int($0) }
        try #require(figures.count == 3)
        #expect(figures[0] == count)
        // Measured: 3.9 MB, and 1.4 s to load beside other work on two cores.
        #expect(figures[1] < 6_000_000)
        #expect(figures[2] < 10_000)
    }

    @Test func aFailedPageLeavesNoFile() throws {
        let directory = try TemporaryDirectory()
        try ToolReports.write(3, to: directory.path + "/reports.ndjson")
        let nothing = try Tool.shell("\"$TOOL\" html \(directory.path) --min 1d -o \(directory.path)/page.html")
        #expect(nothing.status == 66)
        #expect(nothing.text == "Error: No report matches, so there is nothing to show.\n")
        let nowhere = try Tool.shell("\"$TOOL\" html \(directory.path) -o \(directory.path)/none/page.html")
        #expect(nowhere.status == 73)
        #expect(directory.names == ["reports.ndjson"])
    }
}
