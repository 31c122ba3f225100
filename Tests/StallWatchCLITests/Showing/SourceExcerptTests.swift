import Foundation
import TestSupport
import Testing

@testable import StallWatchCLI

@Suite struct SourceExcerptTests {
    private let lines = (1...20).map { Substring("line \($0)") }

    @Test(arguments: [(1, 1, 0, 4), (2, 1, 1, 5), (10, 7, 3, 7), (20, 17, 3, 4)])
    func threeLinesBeforeAndAfter(number: Int, first: Int, place: Int, count: Int) throws {
        let excerpt = try #require(SourceExcerpt(lines, around: number))
        #expect(excerpt.first == first)
        #expect(excerpt.place == place)
        #expect(excerpt.lines.count == count)
        #expect(excerpt.lines[place] == "line \(number)")
    }

    @Test(arguments: [Int.min, -1, 0, 21, Int.max])
    func aLineThatIsNotThereHasNone(number: Int) {
        #expect(SourceExcerpt(lines, around: number) == nil)
    }

    @Test func controlCharactersAreReplaced() throws {
        let excerpt = try #require(SourceExcerpt(["let a = \u{1b}[31m1"], around: 1))
        #expect(excerpt.lines.allSatisfy { !$0.contains("\u{1b}") })
    }

    @Test func aFileThatIsMissingOrTooLargeHasNoLines() throws {
        let directory = try TemporaryDirectory()
        #expect(SourceExcerpt.lines(of: directory.path + "/none.swift").isEmpty)
        #expect(SourceExcerpt.lines(of: directory.path).isEmpty)
        let large = directory.path + "/large.swift"
        try String(repeating: "a\n", count: SourceExcerpt.maximumBytes / 2 + 1)
            .write(toFile: large, atomically: true, encoding: .utf8)
        #expect(SourceExcerpt.lines(of: large).isEmpty)
    }
}
