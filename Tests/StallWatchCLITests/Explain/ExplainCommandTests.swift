import Foundation
import StallReports
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct ExplainTests {
    private static let folder = Repository.root.appendingPathComponent("docs/causes")

    @Test func `a word prints its page as it is in docs`() throws {
        let scratch = try TemporaryDirectory()
        for (word, page) in [("Lock", "lock"), ("throttled", "contention"), ("saturated", "saturation")] {
            let result = try Tool.run(["explain", word], in: scratch)
            #expect(result.status == 0 && result.errors == "", "\(result)")
            let text = try String(contentsOf: Self.folder.appending(path: page + ".md"), encoding: .utf8)
            #expect(result.output == text)
        }
    }

    @Test func `without a word it lists the words`() throws {
        let result = try Tool.run(["explain"])
        #expect(result.status == 0 && result.errors == "", "\(result)")
        #expect(result.output.contains("\nlock            `lock`: the thread waits for a lock\n"), "\(result.output)")
        #expect(result.output.split(separator: "\n").count == CausePage.words.count)
    }

    @Test(arguments: CausePage.words) func `prose fits the terminal, and code stays as it is`(word: String) throws {
        let page = String(decoding: try #require(CausePage.text(word)), as: UTF8.self)
        let wrapped = CausePage.wrapped(page, to: 80)
        #expect(wrapped.split { $0.isWhitespace } == page.split { $0.isWhitespace })
        func parts(_ text: String) -> [[Substring]] {
            text.components(separatedBy: "```").map { $0.split(separator: "\n", omittingEmptySubsequences: false) }
        }
        for (number, (new, old)) in zip(parts(wrapped), parts(page)).enumerated() {
            if number % 2 == 1 { #expect(new == old) }
            #expect(number % 2 == 1 || new.allSatisfy { $0.count <= 80 || $0.hasPrefix("|") }, "\(new)")
        }
    }

    @Test func `every page has a word`() throws {
        let pages = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
        #expect(Set(pages.map { $0.prefix { $0 != "." } }).isSubset(of: CausePage.words.map { $0[...] }))
    }

    /// The words that reports, tables and pages show.
    @Test(arguments: StallReport.causeWords + ["starvation", "overdue", "modeStarvation", "pinned"])
    func `every cause and kind has a page`(word: String) throws {
        let text = try #require(CausePage.text(word))
        #expect(text.starts(with: Array("# ".utf8)))
    }

    @Test func `every rule of advice has a page that the tool prints`() {
        let topics = AdviceRule.all.map { $0.page.dropFirst("docs/causes/".count).dropLast(".md".count) }
        for topic in Set(topics) { #expect(CausePage.text(String(topic)) != nil, "\(topic)") }
    }
}
