import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct ProcReaderTests {
    private let directory = TemporaryDirectory.ofTest()

    @Test(arguments: ["one\ntwo\n", ""]) func aFileIsReadCompletely(text: String) throws {
        #expect(readSmallFile(try directory.write("file", text)) == text)
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

    @Test(arguments: [("", ""), ("one", "one"), ("one\n", "one"), ("one\ntwo\n", "one"), ("\ntwo", "")])
    func theFirstLineEndsAtTheLineFeed(text: String, line: String) {
        #expect(firstLine(text) == line)
    }
}

@Suite struct ByteCursorTests {
    @Test func linesAreFoundByTheirBeginning() {
        var cursor = ByteCursor("nonvoluntary_ctxt_switches:\t7\nvoluntary_ctxt_switches:\t5\n")
        let isFound = cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:")
        let count = cursor.number()
        let isFoundAgain = cursor.skip(pastLinePrefix: "voluntary_ctxt_switches:")
        #expect(isFound && count == 5 && !isFoundAgain)
    }

    @Test func tooLongNumbersAreNil() {
        var cursor = ByteCursor("99999999999999999999 0xfffffffffffffffff x")
        for _ in 0..<3 {
            let number = cursor.number()
            #expect(number == nil)
            cursor.skipWords(1)
        }
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
        #expect(status.process == 4700 && status.tracer == 12, "\(status)")
        #expect(status.effectiveUser == 1001 && status.seccompMode == 2, "\(status)")
        #expect(status.hasNoNewPrivileges == true && status.maySysPtrace == true, "\(status)")
    }

    @Test func `missing fields are unknown`() throws {
        let status = try #require(ProcessStatus("Tgid:\t1\nUid:\t0\t0\t0\t0\n"))
        #expect(status.seccompMode == nil && status.hasNoNewPrivileges == nil, "\(status)")
        #expect(status.maySysPtrace == nil && status.tracer == 0, "\(status)")
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

@Suite struct MemoryMappingTests {
    private let maps = """
        55d0c8a00000-55d0c8b00000 r--p 00000000 fe:00 1234                       /opt/app/bin/app
        7f1c31400000-7f1c31500000 rw-p 00000000 00:00 0\u{20}
        7f1c31600000-7f1c31700000 r--s 00000000 fe:00 77                         /data/a file (deleted)
        7ffe3c300000-7ffe3c400000 rw-p 00000000 00:00 0                          [stack]

        """

    @Test func `an address is found in its mapping`() {
        let executable = MemoryMapping(of: 0x55d0_c8a0_0000, in: maps)
        #expect(executable?.file == "/opt/app/bin/app" && executable?.isShared == false)
        let shared = MemoryMapping(of: 0x7f1c_316f_ffff, in: maps)
        #expect(shared?.file == "/data/a file (deleted)" && shared?.isShared == true)
        #expect(MemoryMapping(of: 0x7f1c_3140_0000, in: maps)?.isShared == false)
    }

    @Test(arguments: [0, 0x55d0_c8b0_0000, 0x7f1c_3140_0000, 0x7ffe_3c30_0000, .max] as [UInt64])
    func `memory without a file has no path`(address: UInt64) {
        #expect(MemoryMapping(of: address, in: maps)?.file == nil)
    }

    @Test func `invalid maps have no path`() {
        for text in ["", "\n\n", "-", "zz-yy r--p 0 0 0 /x", "10-", "0-ffffffffffffffff r--p"] {
            #expect(MemoryMapping(of: 0x10, in: text) == nil)
        }
    }

    @Test func `the executable is the file of this process`() {
        #expect(OwnExecutable.path.hasPrefix("/") && OwnExecutable.path == readLink("/proc/self/exe"))
        #expect(OwnExecutable.file == "/proc/self/exe")
        #expect(fileName("/opt/app/bin/app") == "app")
        #expect(fileName("app") == "app")
    }
}

@Suite struct ProcStatTests {
    @Test func `a command name may have any character`() {
        let stat = ProcStat("4700 (a) R 1) S 1 2 3 4 5 6 11 12 13 14 15 16 17 18 19 20 5 0 4242 23\n")
        #expect(stat?.letter == "S")
        #expect(stat?.parent == 1)
        #expect(stat?.threads == 5)
        #expect(stat?.startTicks == 4242)
        #expect(ProcStat("nonsense") == nil)
        #expect(ProcStat("4700 (a) S 1 2 3 4 5 6 11 12 13 14 15 16 17 18 19 20 5 0 x 23") == nil)
    }

    /// A thread that is not the first one has the exit signal -1.
    @Test(arguments: [38, -1]) func `the fields are counted from the state`(exitSignal: Int32) {
        var fields = (3...52).map(String.init)
        (fields[0], fields[18 - 3], fields[38 - 3]) = ("R", "-51", "\(exitSignal)")
        let stat = ProcStat("4700 (a) \(fields.joined(separator: " "))\n")
        #expect(stat?.startTicks == 22 && stat?.threads == 20 && stat?.exitSignal == exitSignal)
        #expect(stat?.priority == -51 && stat?.processor == 39 && stat?.isReady == true)
    }
}

@Suite struct OwnThreadTests {
    @Test func `/proc shows this process`() {
        #expect(showsOwnThreads)
        #expect(!isProcForeign)
    }
}

@Suite struct ThreadFileTests {
    @Test(arguments: [
        (ThreadFile.syscall, "running\n", true), (.syscall, "", false), (.wchan, "futex_wait_queue", true),
        (.wchan, "0", false), (.schedstat, "12 3 4\n", true), (.schedstat, "0 0 0\n", false),
        (.schedstat, "1\n", false),
        (.status, "Name:\tx\nvoluntary_ctxt_switches:\t5\n", true), (.status, "Name:\tx\n", false),
        (.stat, "1 (x) S 1\n", false), (.stack, "[<0>] futex_wait+0x1/0x2\n", true), (.stack, "", false),
    ])
    func `a file shows its value or not`(file: ThreadFile, text: String, isShown: Bool) {
        #expect(file.isShown(text) == isShown)
    }

    @Test func `files of a waiting thread are read`() throws {
        try ProbedThread.run(isWaiting: true) { thread in
            for file in [ThreadFile.schedstat, .stat, .status] {
                #expect(file.read(in: "/proc/self/task/\(thread)") == .shown)
            }
        }
    }

    @Test func `a missing file has an error number`() throws {
        let directory = try TemporaryDirectory()
        #expect(ThreadFile.wchan.read(in: directory.path) == .missing(errno: ENOENT))
        try directory.write("wchan", "0")
        #expect(ThreadFile.wchan.read(in: directory.path, times: 2) == .hidden)
        // A thread that is shown as asleep, and sleeps a moment later.
        let writer = try WorkerThread(name: "writer") { _ = try? directory.write("wchan", "futex_wait_queue") }
        #expect(ThreadFile.wchan.read(in: directory.path, times: 10_000) == .shown)
        writer.join()
    }
}

/// Epoll instances, whose lock the kernel holds while they are read.
@Suite struct EpollFilesTests {
    @Test func `an instance with many entries is left alone`() {
        let (large, small): (Int32, Int32) = (7, 8)
        let time = Atomic<UInt64>(0)
        let reads = Atomic<UInt64>(0)
        let files = EpollFiles(timeOnCPU: { time.load(ordering: .relaxed) }) { instance in
            reads.wrappingAdd(1, ordering: .relaxed)
            let cost = EpollFiles.longestReading + (instance == large ? 1 : 0)
            time.wrappingAdd(cost, ordering: .relaxed)
            return "tfd"
        }
        for now: UInt64 in 0..<100 { #expect(files.text(of: small, at: now) == "tfd") }
        #expect(reads.load(ordering: .relaxed) == 100)
        for now: UInt64 in 0..<100 { #expect(files.text(of: large, at: now) == nil) }
        #expect(reads.load(ordering: .relaxed) == 101)
        let rest = (EpollFiles.longestReading + 1) * EpollFiles.restFactor
        #expect(files.text(of: large, at: rest - 1) == nil && reads.load(ordering: .relaxed) == 101)
        #expect(files.text(of: large, at: rest) == nil && reads.load(ordering: .relaxed) == 102)
    }

    /// The app may close the instance, and a small one may get its number.
    @Test func `a rest has a limit, and is forgotten when it is over`() {
        let cost = Atomic<UInt64>(EpollFiles.longestRest)
        let time = Atomic<UInt64>(0)
        let files = EpollFiles(timeOnCPU: { time.load(ordering: .relaxed) }) { _ in
            time.wrappingAdd(cost.load(ordering: .relaxed), ordering: .relaxed)
            return "tfd"
        }
        #expect(files.text(of: 7, at: 0) == nil)
        cost.store(0, ordering: .relaxed)
        #expect(files.text(of: 7, at: EpollFiles.longestRest - 1) == nil)
        #expect(files.rests.withLock { $0.count } == 1)
        #expect(files.text(of: 8, at: EpollFiles.longestRest) == "tfd")
        #expect(files.rests.withLock { $0.isEmpty })
        #expect(files.text(of: 7, at: EpollFiles.longestRest) == "tfd")
    }
}

/// Lines of an epoll instance's file in /proc/self/fdinfo.
@Suite struct EpollEntryTests {
    @Test func `libdispatch arms an entry and the kernel disarms it`() {
        let armed = EpollEntry(line: "tfd:       22 events: 40004019 data:     7f8be8000b70  pos:0 ino:80751 sdev:f")
        #expect(armed?.descriptor == 22)
        #expect(armed?.isArmed == true)
        let disarmed = EpollEntry(line: "tfd:       22 events: 40004018 data:     7f8be8000b70  pos:0 ino:80751 sdev:f")
        #expect(disarmed?.descriptor == 22)
        #expect(disarmed?.isArmed == false)
    }

    @Test(arguments: [
        "tfd:       20 events:     4019 data:                1  pos:0 ino:40e sdev:10",
        "tfd:        3 events: c0000019 data:                3  pos:0 ino:40e sdev:10",
        "pos:\t0", "tfd:", "tfd: x events: 40000001", "tfd: 7 events: x", "",
    ])
    func anotherEntryIsNone(line: String) {
        #expect(EpollEntry(line: line[...]) == nil)
    }
}
