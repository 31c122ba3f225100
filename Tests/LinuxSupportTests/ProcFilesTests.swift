import Glibc
import Testing
import TestSupport

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

@Suite struct ProcessStatusTests {
    private static let text = """
        Name:\tnotes
        State:\tS (sleeping)
        Tgid:\t4700
        Pid:\t4701
        TracerPid:\t12
        Uid:\t1000\t1001\t1001\t1001
        CapInh:\t0000000000000000
        CapEff:\t0000000000080000
        NoNewPrivs:\t1
        Seccomp:\t2

        """

    @Test func `the system's rules are read`() throws {
        let status = try #require(ProcessStatus(Self.text))
        #expect(status.process == 4700)
        #expect(status.tracer == 12)
        #expect(status.effectiveUser == 1001)
        #expect(status.seccompMode == 2)
        #expect(status.hasNoNewPrivileges == true)
        #expect(status.maySysPtrace == true)
    }

    @Test func `missing fields are unknown`() throws {
        let status = try #require(ProcessStatus("Tgid:\t1\nUid:\t0\t0\t0\t0\n"))
        #expect(status.seccompMode == nil)
        #expect(status.hasNoNewPrivileges == nil)
        #expect(status.maySysPtrace == nil)
        #expect(status.tracer == 0)
        #expect(ProcessStatus("") == nil)
        #expect(ProcessStatus("Tgid:\t1\nUid:\t0\n") == nil)
    }

    @Test func `a capability is one bit`() {
        #expect(ProcessStatus("Tgid:\t1\nUid:\t0\t0\nCapEff:\tfffffffffff7ffff\n")?.maySysPtrace == false)
    }

    /// A seccomp filter might kill the process for the call.
    @Test func aSeccompFilterIsDetected() {
        #expect(ProcessStatus.mayHaveFilter("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"))
        #expect(ProcessStatus.mayHaveFilter("Seccomp:\t1\n"))
        #expect(!ProcessStatus.mayHaveFilter("NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n"))
        #expect(!ProcessStatus.mayHaveFilter("Name:\tapp\n"))
        #expect(ProcessStatus.mayHaveFilter(""), "the file is hidden, and so may be a filter")
    }
}
