import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct StandardStreamsTests {
    private let streams: StandardStreams

    init() throws {
        streams = StandardStreams(
            streams: [("stdin", { 0 }), ("stdout", { 0x1000 })], lockOffset: 0x88,
            threads: try #require(ThreadDescriptor(idOffset: 0x10, 0x10)))
    }

    @Test func `a stream is known by the address of its lock`() {
        let memory = Words([0x1088: 0x2000])
        #expect(streams.name(ofLockAt: 0x2000, memory) == "stdout")
        #expect(streams.name(ofLockAt: 0x2008, memory) == nil)
        #expect(streams.name(ofLockAt: 0x2000, Words([:])) == nil)
        // A program without stdin has no stream at address 0.
        #expect(streams.name(ofLockAt: 0, Words([0x88: 0])) == nil)
    }

    @Test func `a contended lock names its owner's thread`() {
        let count: UInt64 = 1 << 32
        #expect(
            streams.owner(ofLockAt: 0x2000, Words([0x2000: count | 2, 0x2008: 0x3000, 0x3010: 4711])) == 4711)
        // Nobody waits, it was just released, or the owner's memory is gone.
        #expect(
            streams.owner(ofLockAt: 0x2000, Words([0x2000: count | 1, 0x2008: 0x3000, 0x3010: 4711])) == nil)
        #expect(streams.owner(ofLockAt: 0x2000, Words([0x2000: 2, 0x2008: 0, 0x10: 4711])) == nil)
        #expect(streams.owner(ofLockAt: 0x2000, Words([0x2000: count | 2, 0x2008: 0x3000])) == nil)
    }

    @Test func `this C library has the known layout`() throws {
        let current = try #require(StandardStreams.current)
        // Swift does not let tests use the variable.
        let variable = try #require(dlsym(nil, "stderr"))
        let stream = variable.load(as: UInt.self)
        // FILE's _lock of glibc on 64-bit machines.
        let lock = try #require(UnsafeRawPointer(bitPattern: stream + 136)).load(as: UInt64.self)
        #expect(current.name(ofLockAt: lock, GuardedReads()) == "stderr")
    }

    /// Memory of this process that is known to be mapped.
    private struct GuardedReads: MemoryReading {
        func bytes(at address: UInt64, count: Int) -> [UInt8]? {
            UnsafeRawPointer(bitPattern: UInt(address)).map { Array(UnsafeRawBufferPointer(start: $0, count: count)) }
        }
    }
}

@Suite struct FileLocksTests {
    /// Returns the processes that hold locks, for a request of process 900 for inode 1234.
    private func holders(
        _ kind: String = "FLOCK  ADVISORY ", _ type: String = "WRITE", of process: Int32 = 900, bytes: String = "0 EOF",
        inode: UInt64? = 1234, in text: String
    ) throws -> [Int32] {
        let line = "9: -> \(kind) \(type) \(process) 00:2f:1234 \(bytes)"
        let waiting = try #require(FileLock(line: Substring(line)))
        let request = FileLockRequest(
            waiting.kind, isExclusive: waiting.isExclusive, of: process, inode: inode, bytes: waiting.bytes)
        return request.holders(in: text + "\n" + line + "\n").map(\.process)
    }

    @Test func `a line has the kind, type, process, file and range`() throws {
        let lock = try #require(FileLock(line: "3: POSIX  ADVISORY  WRITE 812 fd:0a:1234 10 19"))
        #expect(lock.kind == .process && lock.isExclusive && !lock.isWaiting)
        #expect(lock.process == 812 && lock.device == [0xfd, 10] && lock.inode == 1234 && lock.bytes == 10...19)
        let shown = try #require(FileLock(line: "lock:\t1: OFDLCK ADVISORY  READ -1 00:2f:1234 0 EOF"))
        #expect(shown.kind == .openFile && shown.process == -1 && !shown.isExclusive && shown.bytes == 0 ... .max)
        let waiting = try #require(FileLock(line: "1: -> FLOCK  ADVISORY  WRITE 900 00:2f:1234 0 EOF"))
        #expect(waiting.isWaiting && waiting.kind == .flock)
    }

    @Test(arguments: [
        "", "1:", "1: LEASE  ACTIVE    READ  812 00:2f:1234 0 EOF", "1: LEASE  BREAKER   READ  812 00:2f:1234 0 EOF",
        "1: FLOCK  ADVISORY  WRITE 812 <none>:0 0 EOF",
        "1: FLOCK  ADVISORY  WRITE 812 00:2f 0 EOF", "1: FLOCK  ADVISORY  WRITE x 00:2f:1 0 EOF",
        "1: POSIX  ADVISORY  WRITE 812 00:2f:1 9 3", "x FLOCK  ADVISORY  WRITE 812 00:2f:1 0 EOF",
        "1: FLOCK  ADVISORY  WRITE 812 00:2f:99999999999999999999 0 EOF",
    ]) func `other lines are no locks`(line: String) {
        #expect(FileLock(line: Substring(line)) == nil)
    }

    @Test func `a lease that has to be given back is known by its file`() throws {
        let lease = try #require(FileLock(line: "2: LEASE  BREAKING  UNLCK 812 fe:00:1234 0 EOF"))
        #expect(lease.kind == .lease && lease.process == 812)
        // 65024 is the device 0xfe:0 of stat(2).
        #expect(lease.isOf([65_024, 1234]) && !lease.isOf([65_025, 1234]) && !lease.isOf([65_024, 1235]))
        let large = try #require(FileLock(line: "2: LEASE  BREAKING  READ 812 1234:56789:7 0 EOF"))
        #expect(large.isOf([0x1000_5672_3489, 7]))
        #expect(try holders(in: "2: LEASE  BREAKING  UNLCK 812 00:2f:1234 0 EOF") == [], "no lock waits for it")
    }

    @Test func `the holder has the same file`() throws {
        let text = """
            1: FLOCK  ADVISORY  WRITE 811 00:2f:99 0 EOF
            2: FLOCK  ADVISORY  WRITE 812 00:2f:1234 0 EOF
            3: FLOCK  ADVISORY  WRITE 813 00:30:1234 0 EOF
            """
        #expect(try holders(in: text) == [812])
        #expect(try holders("POSIX  ADVISORY ", in: text) == [])
        #expect(try holders("OFDLCK ADVISORY ", of: -1, in: text) == [])
        #expect(try holders(inode: nil, in: text) == [812])
    }

    @Test func `the holder has a conflicting type and range`() throws {
        let text = """
            1: POSIX  ADVISORY  READ 811 00:2f:1234 0 9
            2: POSIX  ADVISORY  WRITE 812 00:2f:1234 10 19
            3: OFDLCK ADVISORY  WRITE -1 00:2f:1234 30 EOF
            4: POSIX  ADVISORY  WRITE 900 00:2f:1234 0 EOF
            """
        let kind = "POSIX  ADVISORY "
        #expect(try holders(kind, in: text) == [811, 812, -1])
        #expect(try holders(kind, "READ", in: text) == [812, -1])
        #expect(try holders(kind, bytes: "0 5", in: text) == [811])
        #expect(try holders(kind, bytes: "20 29", in: text) == [])
        // A lock of the same process is in the way of a lock of an open file.
        #expect(try holders("OFDLCK ADVISORY ", of: -1, bytes: "12 12", in: text) == [812, 900])
    }

    /// The processes that have locks, and their makers, as descriptors of processes show them.
    private func holders(
        of lines: [String], shown: [(process: Int32, line: String)], refused: Set<Int32> = [1, 2]
    ) throws -> [[Int32]] {
        let locks = lines.compactMap { FileLock(line: Substring($0)) }
        try #require(locks.count == lines.count)
        let descriptors = shown.compactMap {
            OpenDescriptor(process: $0.process, number: 3, info: "pos:\t0\nflags:\t02\nlock:\t\($0.line)\n")
        }
        try #require(descriptors.count == shown.count)
        let found = FileLock.holders(of: locks, in: descriptors, refused: refused)
        return [found.known, found.makers]
    }

    /// Processes of other users show nothing, so some are refused nearly always.
    @Test func `a lock that its maker left is held by the processes that show it`() throws {
        let flock = "1: FLOCK  ADVISORY  WRITE 812 00:2f:1234 0 EOF"
        #expect(try holders(of: [flock], shown: [(900, flock), (901, flock), (900, flock)]) == [[900, 901], []])
        #expect(try holders(of: [flock], shown: [(900, flock), (812, flock)]) == [[812], []])
        let openFile = "1: OFDLCK ADVISORY  WRITE -1 00:2f:1234 0 EOF"
        #expect(try holders(of: [openFile], shown: [(900, openFile)]) == [[900], []])
        // One of two that share the lock shows it.
        let shared = [812, 813].map { "1: FLOCK  ADVISORY  READ  \($0) 00:2f:1234 0 EOF" }
        #expect(try holders(of: shared, shown: [(813, shared[1])], refused: [812]) == [[813], [812]])
    }

    @Test func `a maker that shows no lock is its holder only if it cannot leave it`() throws {
        let flock = "1: FLOCK  ADVISORY  WRITE 812 00:2f:1234 0 EOF"
        #expect(try holders(of: [flock], shown: []) == [[], [812]])
        #expect(try holders(of: [flock], shown: [], refused: [812]) == [[], [812]])
        let record = "1: POSIX  ADVISORY  WRITE 812 00:2f:1234 0 9"
        #expect(try holders(of: [record], shown: [], refused: [812]) == [[812], []])
        #expect(try holders(of: [record], shown: []) == [[], [812]])
        #expect(try holders(of: ["1: OFDLCK ADVISORY  WRITE -1 00:2f:1234 0 EOF"], shown: []) == [[], []])
    }

    @Test func `without the request no holder is believed`() {
        let text = "2: FLOCK  ADVISORY  WRITE 812 00:2f:1234 0 EOF\n"
        let request = FileLockRequest(.flock, isExclusive: true, of: 900, inode: 1234)
        #expect(request.holders(in: text) == [])
        #expect(request.holders(in: text + "2: -> FLOCK  ADVISORY  WRITE 901 00:2f:1234 0 EOF\n") == [])
    }

    @Test func `a request that may be for one of two files has no holder`() throws {
        let text = """
            2: FLOCK  ADVISORY  WRITE 812 00:2f:1234 0 EOF
            3: FLOCK  ADVISORY  WRITE 813 00:30:77 0 EOF
            3: -> FLOCK  ADVISORY  WRITE 900 00:30:77 0 EOF
            """
        #expect(try holders(inode: nil, in: text) == [])
        #expect(try holders(in: text) == [812])
    }
}
