import Foundation
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct PageTests {
    private func html(_ reports: [StallReport]) -> String {
        var data = PageData()
        for report in reports { data.add(report) }
        return String(decoding: Page.html(data.json()), as: UTF8.self)
    }

    /// The text between the tags of the element with the data.
    private func data(of html: String) throws -> [String: Any] {
        let begin = try #require(html.range(of: "<script type=\"application/json\" id=\"data\">"))
        let end = try #require(html.range(of: "</script>", range: begin.upperBound..<html.endIndex))
        let json = try JSONSerialization.jsonObject(with: Data(html[begin.upperBound..<end.lowerBound].utf8))
        return try #require(json as? [String: Any])
    }

    @Test func namesStayData() throws {
        let evil = "</script><script>alert(1)</script>%JS% %DATA% %"
        let html = self.html([try StackFixture.report(300, loop: "%CSS%", [.init(at: 250, stack: [evil])])])
        #expect(!html.contains("alert(1)</script>"))
        // One element for the data and one for the scripts.
        #expect(html.components(separatedBy: "</script>").count == 3)
        let strings = try #require(try data(of: html)["strings"] as? [String])
        #expect(strings.contains(evil))
        let loops = try #require(try data(of: html)["loops"] as? [[String: Any]])
        #expect(loops.first?["label"] as? String == "%CSS%")
    }

    @Test func `every cause, and every kind without one, has a color of its own`() throws {
        let page = self.html([])
        let colors = try StallReport.causeWords.map { word in
            let entry = try Regex("\\b\(word): \"(#[0-9a-f]{6})\"", as: (Substring, Substring).self)
            return try #require(page.firstMatch(of: entry), "\(word)").output.1
        }
        #expect(Set(colors).count == StallReport.causeWords.count)
    }

    @Test func `without scripts it is a list of the groups`() throws {
        var page = PageData()
        let name = "save<Note>(_:)%JS%"
        for (number, milliseconds) in [300.0, 900].enumerated() {
            let report = ReportFixture(number: number, milliseconds: milliseconds, repeats: 1, function: name)
            page.add(try StallReport(jsonData: report.bytes))
        }
        let escaped = "save&lt;Note&gt;(_:)%JS%"
        #expect(
            page.list.hasPrefix(
                "<li><b>2.40 s in \(escaped) (lock)</b><br>4 stalls of main in \(escaped): 2.40 s in all, 900 ms at most."
                    + "<br>Blocked for 480 of 500 ms in pthread_mutex_lock.<br>Try: Move the sleep in writeWAL() out of "
            ),
            "\(page.list)")
        #expect(page.list.hasSuffix("<br>NoteStore.swift:88</li>\n"), "\(page.list)")
        #expect(
            String(decoding: Page.html(page.json(), list: page.list), as: UTF8.self).contains("<ol>\n\(page.list)</ol>")
        )
    }

    @Test func `a lock's owner has its own source lines`() throws {
        let directory = try TemporaryDirectory()
        let waiter = try directory.write("NoteStore.swift", (1...100).map { "line \($0)\n" }.joined())
        let owner = try directory.write("WAL.swift", "func writeWAL() {\n    usleep(1)\n}\n")
        let named = #""function": "writeWAL()", "file": "\#(owner)", "line": 2"#
        let json = ReportFixture(file: waiter).json.replacing(#""function": "writeWAL()""#, with: named)
        var page = PageData(sources: SourceFiles(below: [directory.path]))
        page.add(try StallReport(jsonData: Array(json.utf8)))
        let data = try data(of: String(decoding: Page.html(page.json()), as: UTF8.self))
        let locks = try #require(data["locks"] as? [String: [String: Any]])
        let held = try #require((locks["0"]?["owners"] as? [[String: Any]])?.first?["source"] as? Int)
        let sources = try #require(data["sources"] as? [[String: Any]])
        #expect((sources[held]["lines"] as? [String])?[1] == "    usleep(1)")
        let own = try #require(try stalls(data, "source")[0])
        #expect((sources[own]["lines"] as? [String])?[3] == "line 88")
    }

    /// The list of groups sorts by it.
    @Test func `harm is stored in microseconds, and as null if it is not known`() throws {
        var page = PageData()
        for (number, harm) in [1_900.0, 0, nil].enumerated() {
            page.add(try StallReport(jsonData: ReportFixture(number: number, harm: harm).bytes))
        }
        let data = try data(of: String(decoding: Page.html(page.json()), as: UTF8.self))
        #expect(try stalls(data, "harm") == [1_900_000, 0, nil])
    }

    @Test func contextsAreStoredByLabelAndInWords() throws {
        var report = try StackFixture.report(300, [.init(at: 250, stack: ["a"])])
        report.context = .init(taskID: 12)
        report.context?.label = "GET /feed"
        let other = try StackFixture.report(300, [.init(at: 250, stack: ["a"])])
        let data = try data(of: html([other, report]))
        let strings = try #require(data["strings"] as? [String])
        let column = try #require((data["stalls"] as? [String: Any])?["context"] as? [Any])
        #expect(column.count == 2 && column[0] is NSNull && (column[1] as? Int).map { strings[$0] } == "GET /feed")
        #expect(data["contexts"] as? [String: String] == ["1": "GET /feed, task 12"])
    }

    @Test func stacksAndNamesAreStoredOnce() throws {
        let report = try StackFixture.report(300, [.init(at: 250, stack: ["libc!wait", "save", "main"])])
        let one = try data(of: html([report]))
        let many = try data(of: html([StallReport](repeating: report, count: 500)))
        #expect((one["strings"] as? [String]) == (many["strings"] as? [String]))
        let nodes = try #require((many["nodes"] as? [String: Any])?["frame"] as? [Int])
        #expect(nodes.count == 3)
        let shares = try #require((many["shares"] as? [String: Any])?["microseconds"] as? [Int])
        #expect(shares.reduce(0, +) == 150_000_000)
    }

    /// A report takes some 200 bytes in addition to the parts that it shares with other reports.
    @Test func anAdditionalReportIsSmall() throws {
        let report = try StackFixture.report(300, [.init(at: 250, stack: ["libc!wait", "save", "main"])])
        let few = html([StallReport](repeating: report, count: 100)).utf8.count
        let many = html([StallReport](repeating: report, count: 1_100)).utf8.count
        #expect(many - few < 1_000 * 250)
    }

    @Test func `what changed is known from the versions`() throws {
        let reports = try ["1", "2"].flatMap { version in
            try (0..<9).map { number in
                let isOld = version == "1"
                return try StallReport(
                    jsonData: ReportFixture(
                        number: number + (isOld ? 0 : 9), startedAt: "2026-11-21T\(isOld ? "19" : "20"):00:00.000000Z",
                        pid: isOld ? 1 : 2, metadata: ["version": version],
                        fingerprint: String(repeating: isOld ? "a" : "b", count: 16)
                    ).bytes)
            }
        }
        let changes = try data(of: html(reports))["changes"] as? [String: String]
        #expect(changes == ["aaaaaaaaaaaaaaaa": "gone", "bbbbbbbbbbbbbbbb": "new"])
        #expect(try data(of: html(Array(reports.prefix(9))))["changes"] as? [String: String] == [:])
    }

    @Test func `a fingerprint has its stalls per hour of monitored time`() throws {
        // 1 report and 7 repeats in half an hour.
        let report = ReportFixture(
            startedAt: "2026-11-21T19:00:00.000000Z", fingerprint: "aaaaaaaaaaaaaaaa", repeats: 7)
        var page = PageData()
        page.add(try StallReport(jsonData: report.bytes))
        page.time = MonitoredTime(hours: 0.5, source: .statistics)
        let known = try data(of: String(decoding: Page.html(page.json()), as: UTF8.self))
        #expect(known["rates"] as? [String: String] == ["aaaaaaaaaaaaaaaa": "16.00 (6.89 to 31.53)"])
        #expect(known["hours"] as? String == "30 min 0 s by the statistics")
        page.time = nil
        let unknown = try data(of: String(decoding: Page.html(page.json()), as: UTF8.self))
        #expect(unknown["rates"] as? [String: String] == [:])
    }

    @Test(arguments: ["9f2c", "1"]) func `a comparison refuses digits and rows`(word: String) throws {
        let scratch = try TemporaryDirectory()
        for folder in ["before/", "after/"] { try scratch.write([ReportFixture(number: 1)], in: folder) }
        let result = try Tool.run(["html", "before", "after", word], in: scratch)
        #expect(result.errors.hasPrefix("Error: A comparison takes no digits and no rows: "), "\(result)")
        #expect(result.status == 2 && scratch.names == ["after", "before"], "\(result)")
    }

    @Test func `the page knows both names of a version`() {
        let page = html([])
        for name in ["version", "service.version"] { #expect(page.contains("pairs.get(\"\(name)\")"), "\(name)") }
    }

    @Test func `a link is part of the page`() throws {
        var page = PageData(link: "vscode://file{file}:{line}")
        page.add(try StallReport(jsonData: ReportFixture(number: 1).bytes))
        #expect(String(decoding: page.json(), as: UTF8.self).contains("\"link\":\"vscode://file{file}:{line}\""))
    }

    private func stalls(_ data: [String: Any], _ column: String) throws -> [Int?] {
        let values = try #require((data["stalls"] as? [String: Any])?[column] as? [Any])
        return values.map { $0 as? Int }
    }

    @Test func eachReportOfAComparisonHasItsSide() throws {
        let report = try StackFixture.report(300, [.init(at: 250, stack: ["save", "main"])])
        var page = PageData(comparing: [.init(name: "before", hours: 5_000), .init(name: "after", hours: 0)])
        page.add(report, side: 0)
        page.add(report, side: 1)
        let data = try data(of: String(decoding: Page.html(page.json()), as: UTF8.self))
        #expect(try stalls(data, "side") == [0, 1])
        let sides = try #require(data["sides"] as? [[String: Any]])
        #expect(sides.map { $0["name"] as? String } == ["before", "after"])
        // A side without time does not divide by zero.
        #expect(sides.map { $0["microseconds"] as? Int } == [18_000_000_000_000, 1])
    }

    @Test func sourceLinesAreThereOnceAndOnlyIfWanted() throws {
        let directory = try TemporaryDirectory()
        let file = directory.path + "/NoteStore.swift"
        try (1...100).map { "line \($0)\n" }.joined().write(toFile: file, atomically: true, encoding: .utf8)
        let known = try StallReport(jsonData: ReportFixture(file: file).bytes)
        let unknown = try StallReport(jsonData: ReportFixture(file: directory.path + "/Other.swift").bytes)
        for isWanted in [true, false] {
            var page = PageData(sources: SourceFiles(below: isWanted ? [directory.path] : []))
            for report in [known, unknown, known] { page.add(report) }
            let data = try data(of: String(decoding: Page.html(page.json()), as: UTF8.self))
            #expect(try stalls(data, "source") == (isWanted ? [0, nil, 0] : [nil, nil, nil]))
            let sources = try #require(data["sources"] as? [[String: Any]])
            #expect(sources.count == (isWanted ? 1 : 0))
            // The culprit's line is 88.
            if isWanted { #expect((sources[0]["lines"] as? [String])?[3] == "line 88") }
        }
    }

    @Test func metadataIsStoredOnceForEachSet() throws {
        let reports = try [["version": "1"], ["version": "2", "host": "a"], ["version": "1"]].map {
            try StallReport(jsonData: ReportFixture(metadata: $0).bytes)
        }
        let data = try data(of: html(reports))
        #expect(try stalls(data, "metadata") == [0, 1, 0])
        let strings = try #require(data["strings"] as? [String])
        #expect(try stalls(data, "host").map { $0.map { strings[$0] } } == reports.map(\.process.hostname))
        let sets = try #require(data["metadata"] as? [[Int]])
        #expect(sets.map { $0.map { strings[$0] } } == [["version", "1"], ["host", "a", "version", "2"]])
    }
}
