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
}

@Suite struct SourceFilesTests {
    /// A directory with files inside `app` and beside it, and what `app` shows of them.
    private func lines(of file: String, linkedTo target: String? = nil) throws -> [Substring] {
        let directory = try TemporaryDirectory()
        for folder in ["/app", "/app2"] { mkdir(directory.path + folder, 0o700) }
        for name in ["app/a.swift", "app/secret.env", "app/Makefile", "app2/b.swift", "c.swift"] {
            try directory.write(name, Array("one\ntwo\n".utf8))
        }
        if let target { symlink(target, directory.path + "/" + file) }
        let path = file.hasPrefix("/") || file == "a.swift" ? file : directory.path + "/" + file
        return SourceFiles(below: [directory.path + "/app"]).lines(of: path)
    }

    @Test(arguments: ["app/a.swift", "app/../app/a.swift", "a.swift"])
    func `a source file below the directory is shown`(file: String) throws {
        #expect(try lines(of: file).first == "one")
    }

    @Test(arguments: [
        "app/secret.env", "app/Makefile", "app2/b.swift", "c.swift", "app/../c.swift", "/etc/passwd", "app",
        "app/none.swift",
    ])
    func `any other file is not shown`(file: String) throws { #expect(try lines(of: file).isEmpty) }

    @Test(arguments: ["secret.env", "../c.swift", "/etc/passwd"])
    func `a link to another file is not shown`(target: String) throws {
        #expect(try lines(of: "app/link.swift", linkedTo: target).isEmpty)
    }

    @Test func `a file that is too large has no lines`() throws {
        let directory = try TemporaryDirectory()
        let large = directory.path + "/large.swift"
        try String(repeating: "a\n", count: SourceFiles.maximumBytes / 2 + 1)
            .write(toFile: large, atomically: true, encoding: .utf8)
        #expect(SourceFiles(below: [directory.path]).lines(of: large).isEmpty)
    }
}
