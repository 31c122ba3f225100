import Foundation
import StallReports
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

    @Test func thePageLoadsNoOtherFile() throws {
        let html = self.html([try StackFixture.report(300, [.init(at: 250, stack: ["a"])])])
        #expect(html.contains("default-src 'none'"))
        for text in ["http://", "https://", "src=", "@import", "url("] {
            #expect(!html.contains(text), "\(text) is in the page")
        }
        #expect(!html.contains("%CSS%") && !html.contains("%JS%") && !html.contains("%DATA%"))
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
}
