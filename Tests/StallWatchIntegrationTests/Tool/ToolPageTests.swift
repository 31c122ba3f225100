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

    /// At 390, 800, 1280 and 1920 pixels, light and dark.
    @Test(arguments: [3, 20_000])
    func filtersLinksAndLayout(count: Int) throws {
        let directory = try TemporaryDirectory()
        let reports = directory.path + "/reports.ndjson"
        try ToolReports.write(count, to: reports)
        try Tool.run(["html", reports, "-o", directory.path + "/page.html"])
        let axe = Repository.root.appendingPathComponent(".build/python/axe_core_python/axe.min.js").path
        let page = try Tool.reader(
            "use-page.py", [directory.path + "/page.html", reports, ToolReports.function, axe])
        #expect(page.status == 0, "\(page.text)")
        #expect(page.text.hasPrefix("\(count) reports"))
    }

    @Test func theDetailHasWhatShowHas() throws {
        let directory = try TemporaryDirectory()
        let loops = 12
        try DetailedReport.write(to: directory.path, loops: loops - 1)
        try Tool.run(["html", directory.path + "/reports.ndjson", "-o", directory.path + "/page.html"])
        let words = [
            "pay() \(DetailedReport.hostile)", "Wallet.swift:3", "Waited for a mutex held by thread 71 \"writer <b>\".",
            "held by thread 71 “writer <b>”, which is in fsync(/var/lib/notes/wal)",
            "thread 71 “writer <b>”, blocked, in fsync(/var/lib/notes/wal)", "2 × the thread did not stop in time",
            "ledger.lock() // \(DetailedReport.hostile)", "release=2.0 \(DetailedReport.hostile)", "Writer.flush()",
            "2 turns, at most 60 ms", "db \(DetailedReport.hostile)", "1 turn, at most 30.00 s",
        ]
        try words.joined(separator: "\n").write(toFile: directory.path + "/words", atomically: true, encoding: .utf8)
        let page = try Tool.reader(
            "read-detail.py", [directory.path + "/page.html", directory.path + "/words", String(loops)])
        #expect(page.status == 0, "\(page.text)")
        // Without the source lines, for a page that leaves the house.
        try Tool.run(["html", directory.path + "/reports.ndjson", "--no-source", "-o", directory.path + "/page.html"])
        let bare = try String(contentsOfFile: directory.path + "/page.html", encoding: .utf8)
        #expect(!bare.contains("ledger.lock()"))
    }

    @Test func aComparisonIsRedAndBlue() throws {
        let directory = try TemporaryDirectory()
        let sides = ["before", "after"].map { directory.path + "/\($0).ndjson" }
        try ToolReports.write(60, to: sides[0])
        try ToolReports.write(400, from: 60, firstKind: 5, to: sides[1])
        try Tool.run(["html", sides[0], sides[1], "-o", directory.path + "/page.html"])
        try Tool.run(["diff", sides[0], sides[1], "--json"])
            .write(toFile: directory.path + "/diff.json", atomically: true, encoding: .utf8)
        let page = try Tool.reader("compare-page.py", [directory.path + "/page.html", directory.path + "/diff.json"])
        #expect(page.status == 0, "\(page.text)")
        for (paths, words) in [
            ([sides[0]], "--compare takes two paths"), ([sides[0], "-"], "cannot read standard input"),
        ] {
            let refused = try Tool.shell("\"$TOOL\" html --compare \(paths.joined(separator: " ")) -o -")
            #expect(refused.status == 64)
            #expect(refused.text.contains(words))
        }
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
