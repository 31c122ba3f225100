import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct ProcReaderTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func aFileIsReadCompletely() throws {
        let file = try directory.write("file", Array("one\ntwo\n".utf8))
        #expect(readSmallFile(file) == "one\ntwo\n")
    }

    @Test func anEmptyFileIsAnEmptyString() throws {
        #expect(readSmallFile(try directory.write("empty", "")) == "")
    }

    @Test func aLargeFileIsTruncated() throws {
        let file = try directory.write("large", repeatElement(UInt8(ascii: "x"), count: 1 << 20))
        let count = try #require(readSmallFile(file)).utf8.count
        #expect((65_536..<131_072).contains(count))
    }

    @Test func aMissingFileOrLinkGivesNil() throws {
        #expect(readSmallFile(directory.path + "/missing") == nil)
        // It can be opened, and the read fails.
        #expect(readSmallFile(directory.path) == nil)
        #expect(readLink(directory.path) == nil)
        #expect(readLink(directory.path + "/missing") == nil)
    }

    @Test func readLinkReturnsTheTarget() throws {
        #expect(try #require(readLink("/proc/self/exe")).hasPrefix("/"))
    }

    @Test(arguments: [("", ""), ("one", "one"), ("one\n", "one"), ("one\ntwo\n", "one"), ("\ntwo", "")])
    func theFirstLineEndsAtTheLineFeed(text: String, line: String) {
        #expect(firstLine(text) == line)
    }
}
