import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct ProcFilesTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    @Test func aFileIsReadWhole() throws {
        let file = try directory.write("file", Array("one\ntwo\n".utf8))
        #expect(readSmallFile(file) == "one\ntwo\n")
    }

    @Test func anEmptyFileIsNoFailure() throws {
        #expect(readSmallFile(try directory.write("empty", "")) == "")
    }

    @Test func aLargeFileIsCut() throws {
        let file = try directory.write("large", repeatElement(UInt8(ascii: "x"), count: 1 << 20))
        let count = try #require(readSmallFile(file)).utf8.count
        #expect((65_536..<131_072).contains(count))
    }

    @Test func whatIsNotThereOrNoFileGivesNothing() throws {
        #expect(readSmallFile(directory.path + "/missing") == nil)
        #expect(readLink(directory.path) == nil)
        #expect(readLink(directory.path + "/missing") == nil)
    }

    @Test func aLinkLeadsToItsTarget() throws {
        #expect(try #require(readLink("/proc/self/exe")).hasPrefix("/"))
    }

    @Test(arguments: [("", ""), ("one", "one"), ("one\n", "one"), ("one\ntwo\n", "one"), ("\ntwo", "")])
    func theFirstLineEndsAtTheLineFeed(text: String, line: String) {
        #expect(firstLine(text) == line)
    }
}
