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

@Suite struct MappedFileTests {
    private let maps = """
        55d0c8a00000-55d0c8b00000 r--p 00000000 fe:00 1234                       /opt/app/bin/app
        7f1c31400000-7f1c31500000 rw-p 00000000 00:00 0\u{20}
        7f1c31600000-7f1c31700000 r--s 00000000 fe:00 77                         /data/a file (deleted)
        7ffe3c300000-7ffe3c400000 rw-p 00000000 00:00 0                          [stack]

        """

    @Test func `an address is found in its mapping`() {
        #expect(mappedFile(at: 0x55d0_c8a0_0000, in: maps) == "/opt/app/bin/app")
        #expect(mappedFile(at: 0x7f1c_316f_ffff, in: maps) == "/data/a file (deleted)")
    }

    @Test(arguments: [0, 0x55d0_c8b0_0000, 0x7f1c_3140_0000, 0x7ffe_3c30_0000, .max] as [UInt64])
    func `memory without a file has no path`(address: UInt64) {
        #expect(mappedFile(at: address, in: maps) == nil)
    }

    @Test func `invalid maps have no path`() {
        for text in ["", "\n\n", "-", "zz-yy r--p 0 0 0 /x", "10-", "0-ffffffffffffffff r--p"] {
            #expect(mappedFile(at: 0x10, in: text) == nil)
        }
    }

    @Test func `the executable is the file of this process`() {
        #expect(OwnExecutable.path == readLink("/proc/self/exe"))
        #expect(OwnExecutable.file == "/proc/self/exe")
        #expect(fileName("/opt/app/bin/app") == "app")
        #expect(fileName("app") == "app")
    }
}
