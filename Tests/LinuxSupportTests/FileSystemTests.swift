import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct WriteAllTests {
    @Test(.timeLimit(.minutes(10))) func `a full pipe that does not block is waited for if asked`() throws {
        var ends: [Int32] = [-1, -1]
        let status = pipe(&ends)
        try #require(status == 0)
        defer { for end in ends { close(end) } }
        try #require(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0)
        let bytes = [UInt8](repeating: 7, count: 300_000)
        #expect(writeAll(bytes, to: ends[1]) == EAGAIN)
        let reader = ends[0]
        let received = Atomic<Int>(0)
        let thread = try WorkerThread(name: "test-read") {
            var buffer = [UInt8](repeating: 0, count: 10_000)
            while case let count = read(reader, &buffer, buffer.count), count > 0 {
                received.add(count, ordering: .relaxed)
            }
        }
        #expect(writeAll(bytes, to: ends[1], waitingForReader: true) == nil)
        close(ends[1])
        ends[1] = -1
        thread.join()
        // Those of the first call that found room, and all of the second one's.
        #expect(received.load(ordering: .relaxed) > bytes.count)
    }
}

@Suite struct StreamNumberTests {
    @Test func `a file that got the number of a closed stream gets another one`() throws {
        let descriptor = open("/dev/null", O_RDWR | O_CLOEXEC)
        try #require(descriptor > STDERR_FILENO)
        let identity = FileStatus(descriptor: descriptor)?.identity
        #expect(outsideOfStreams(descriptor) == descriptor)
        #expect(outsideOfStreams(-1) == -1)
        let other = outsideOfStreams(descriptor, streams: 0...descriptor)
        defer { close(other) }
        #expect(other > descriptor && FileStatus(descriptor: other)?.identity == identity)
        #expect(fcntl(other, F_GETFD) == FD_CLOEXEC)
    }
}

@Suite struct DirectoryEntryTests {
    /// The last entry of a full buffer may end where mapped memory ends.
    @Test func anEntryIsReadOnlyToTheEndOfItsName() throws {
        let page = sysconf(Int32(_SC_PAGESIZE))
        let memory = try #require(mmap(nil, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
        try #require(memory != MAP_FAILED && mprotect(memory + page, page, PROT_NONE) == 0)
        defer { munmap(memory, 2 * page) }
        // d_ino, d_off, d_reclen and d_type have 19 bytes (getdents(2)); the name and its null have five.
        let entry = memory + page - 24
        entry.storeBytes(of: UInt8(DT_REG), toByteOffset: 18, as: UInt8.self)
        (entry + 19).copyMemory(from: "name", byteCount: 5)
        let read = DirectoryEntry(entry.assumingMemoryBound(to: dirent.self))
        #expect(read.name == "name")
        #expect(read.type == DT_REG)
    }

    @Test func entriesIncludeTheDirectoryItself() throws {
        let names = try #require(directoryEntries("/proc/self/task")).map(\.name)
        #expect(names.contains(".") && names.contains(String(getpid())))
    }

    @Test func `of many names the first ones are read`() throws {
        let scratch = try TemporaryDirectory()
        for name in ["a", "b", "c"] { try scratch.write(name, "") }
        let directory = FixedDirectory(scratch.path)
        #expect(names(in: directory, atMost: 4).count == 4)
        #expect(names(in: directory, atMost: 6).count == 5, "with those of the directory and its parent")
    }

    @Test func anotherFileHasNoEntries() {
        #expect(directoryEntries("/proc/self/stat") == nil)
        #expect(errno == ENOTDIR)
    }
}

@Suite struct FileStatusTests {
    /// tmpfs keeps such a time; 64 bits of nanoseconds end in 2262.
    @Test(arguments: [(10_413_792_000, Int.max), (-9_223_372_037, .min), (1, 1_000_000_005)])
    func `a file may be of any time`(seconds: Int, changedAt: Int) throws {
        let directory = try TemporaryDirectory(isInMemory: true)
        let path = try directory.write("file", "")
        let times = [timespec](repeating: timespec(tv_sec: seconds, tv_nsec: 5), count: 2)
        try #require(utimensat(AT_FDCWD, path, times, 0) == 0)
        #expect(FileStatus(path: path)?.changedAt == changedAt)
        #expect(FileStatus(path: path)?.touchedAt != changedAt, "that of the call")
    }
}

@Suite struct AtomicFileTests {
    private let directory = TemporaryDirectory.ofTest()

    /// Opening a FIFO for writing waits for a reader, for ever.
    @Test(.timeLimit(.minutes(10))) func `a FIFO at a file's name is replaced, and does not block`() throws {
        let path = directory.path("file")
        try #require(mkfifo(path, 0o600) == 0)
        #expect(try AtomicFile.write([1, 2], to: path) == .done)
        #expect(AtomicFile.read(path, limit: 10) == [1, 2])
    }

    @Test func `a symbolic link at a file's name is replaced, and its target stays`() throws {
        let target = try directory.write("target", "old")
        try #require(symlink(target, directory.path("link")) == 0)
        try AtomicFile.write([1], to: directory.path("link"))
        #expect(AtomicFile.read(target, limit: 10) == Array("old".utf8))
    }

    @Test func `no temporary file has a name that can be foreseen`() throws {
        #expect(Set((0..<10).map { _ in AtomicFile.temporaryPath(for: "a") }).count == 10)
        // What the process would have used: the file is replaced although the name is taken.
        try #require(mkfifo(directory.path("state.\(getpid()).tmp"), 0o600) == 0)
        try AtomicFile.replace(directory.path("state"), with: [1])
        try AtomicFile.replace(directory.path("state"), with: [2], changedAt: 0)
        #expect(AtomicFile.read(directory.path("state"), limit: 10) == [2])
        #expect(directory.names.count == 2)
    }

    @Test func `a temporary file's name tells its writer, and no other name does`() throws {
        let own = try #require(ProcessIdentity.current())
        #expect(AtomicFile.writer(of: AtomicFile.temporaryPath(for: "état.json"), beside: "état.json") == own)
        let others = [
            "a.x.tmp", "a.\(own).tmp", "a.A1.\(own).tmp", "a.+1.\(own).tmp", "a.1.\(own).tmp.x", "a.1.+\(own).tmp",
            AtomicFile.temporaryPath(for: "a.b"), AtomicFile.temporaryPath(for: "aa"), "a.", "a", "",
        ]
        #expect(others.filter { AtomicFile.writer(of: $0, beside: "a") != nil } == [])
        // The same letter in other bytes is another file's name.
        #expect(AtomicFile.writer(of: AtomicFile.temporaryPath(for: "\u{e9}"), beside: "e\u{301}") == nil)
    }
}

@Suite struct FileFlushTests {
    @Test func `a file of an ordinary file system is flushed`() throws {
        let directory = try TemporaryDirectory()
        #expect(try AtomicFile.write([1], to: directory.path("file")) == .done)
    }

    /// A pipe cannot be flushed (fsync(2): EINVAL).
    @Test func `a refused flush is no failure`() throws {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(FileFlush(ends[1]) == .unavailable(errno: EINVAL))
    }

    @Test(arguments: [ENOSYS, EPERM, EOPNOTSUPP, EROFS])
    func `a refusal is not a fault of the disk`(error: Int32) {
        #expect(FileFlush(errno: error) == .unavailable(errno: error))
    }

    @Test(arguments: [EIO, ENOSPC, EDQUOT])
    func `a fault of the disk is a failure`(error: Int32) {
        #expect(FileFlush(errno: error) == .failed(errno: error))
    }
}

struct CRC32Tests {
    @Test("the check value of the standard, in pieces, too", arguments: [["123456789"], ["1234", "", "56789"]])
    func checkValue(pieces: [String]) {
        var checksum = CRC32()
        #expect(checksum.value == 0)
        for piece in pieces { checksum.add(Array(piece.utf8)) }
        #expect(checksum.value == 0xcbf4_3926)
    }
}

@Suite struct KeptDescriptorTests {
    /// As after close_range(2) in a daemon, whose next file gets the number.
    @Test func `a file that has the number of a closed one stays open`() {
        let (kept, other) = (open("/dev/null", O_RDONLY | O_CLOEXEC), open("/dev/zero", O_RDONLY | O_CLOEXEC))
        let first = KeptDescriptor(kept)
        #expect(first.isOpen)
        dup2(other, kept)
        #expect(!first.isOpen && first.usable == -1)
        #expect(first.close() == 0)
        var byte: UInt8 = 1
        #expect(read(kept, &byte, 1) == 1 && byte == 0, "it is the other file")
        KeptDescriptor(kept).close()
        #expect(read(other, &byte, 1) == 1)
        close(other)
    }
}

@Suite struct OpenFileTests {
    @Test func `who reads the same file has the same descriptor, while it can be read`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/statistics"
        try "12".write(toFile: path, atomically: false, encoding: .utf8)
        let first = OpenFile.shared(path)
        #expect(first != nil && OpenFile.shared(path) === first)
        try "".write(toFile: path, atomically: false, encoding: .utf8)
        let second = OpenFile.shared(path)
        #expect(second != nil && second !== first, "that of a control group that is gone")
        #expect(OpenFile.shared("/nothing") == nil)
    }

    /// As after closefrom(3) in a daemon.
    @Test func `a file that the program has closed is opened again, and its own stays open`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("statistics", "12")
        var file = OpenFile.shared(path)
        let number = (directoryEntries("/proc/self/fd") ?? []).compactMap { Int32($0.name) }.first {
            readLink("/proc/self/fd/\($0)") == path
        }
        let (theirs, own) = (open("/dev/zero", O_RDONLY | O_CLOEXEC), try #require(number))
        try #require(dup2(theirs, own) == own)
        var buffer = [UInt8](repeating: 1, count: 4)
        #expect(file?.read(into: &buffer) == 2 && buffer == Array("12".utf8) + [1, 1])
        file = nil
        for number in [theirs, own] { #expect(close(number) == 0) }
    }
}

@Suite struct FreeDescriptorTests {
    @Test func `more than the limit are never free`() throws {
        var limit = rlimit()
        try #require(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
        #expect(hasDescriptors(for: 1))
        #expect(!hasDescriptors(for: Int(clamping: limit.rlim_cur)))
    }
}

@Suite struct OpenFileSearchTests {
    private static let noPipe = WantedFile(link: "pipe:[0]")

    @Test(arguments: [("0100000", true, false), ("02000001", false, true), ("02", true, true)])
    func `the flags say what the descriptor is open for`(flags: String, reads: Bool, writes: Bool) throws {
        let info = "pos:\t0\nflags:\t\(flags)\nmnt_id:\t14\n"
        let descriptor = try #require(OpenDescriptor(process: 7, number: 3, info: info))
        #expect(descriptor.isReadable == reads && descriptor.isWritable == writes)
    }

    @Test func `text without flags is no descriptor`() {
        #expect(OpenDescriptor(process: 7, number: 3, info: "pos:\t0\n") == nil)
        #expect(OpenDescriptor(process: 7, number: 3, info: "flags:\t9\n") == nil)
    }

    @Test func `both ends of a pipe are found, here and in a child`() throws {
        let input = Pipe()
        let process = Command(program: "/bin/sleep", arguments: ["60"]).process()
        process.standardInput = input
        try process.run(atMost: 60)
        defer { process.kill() }
        let writeEnd = input.fileHandleForWriting.fileDescriptor
        let pipe = WantedFile(link: try #require(readLink("/proc/self/fd/\(writeEnd)")))
        let search = OpenFileSearch(for: [pipe, Self.noPipe], first: [getpid()])
        #expect(search[pipe].first?.process == getpid())
        #expect(search[pipe].contains { $0.process == getpid() && $0.number == writeEnd && $0.isWritable })
        #expect(search[pipe].contains { $0.process == process.processIdentifier && $0.isReadable && !$0.isWritable })
        // A machine may have more descriptors than one search looks at.
        #expect(search.hasSeen([getpid(), process.processIdentifier]))
        #expect(search[Self.noPipe] == [])
    }

    /// In another mount namespace, the same path is another file, and another path the same file.
    @Test func `with its identity, a file is found by that and its name`() throws {
        let (one, two) = (try TemporaryDirectory(), try TemporaryDirectory())
        let files = try [one, two].map { directory in
            try #require(mkfifo(directory.path + "/fifo", 0o600) == 0)
            let file = open(directory.path + "/fifo", O_RDWR | O_CLOEXEC)
            try #require(file >= 0)
            return file
        }
        defer { for file in files { close(file) } }
        func found(_ path: String, _ identity: [UInt64]) -> [Int32] {
            let file = WantedFile(link: path, identity: identity)
            // Another test's child may have them open, too.
            let found = OpenFileSearch(for: [file], first: [getpid()])[file]
            return found.filter { $0.process == getpid() }.map(\.number)
        }
        let identity = try #require(FileStatus(cachedAt: two.path + "/fifo")?.identity)
        #expect(identity == FileStatus(descriptor: files[1])?.identity)
        #expect(found(one.path + "/fifo", identity) == [files[1]])
        #expect(found(one.path + "/other", identity) == [] && found(two.path + "/fifo", []) == [])
    }

    @Test func `the newest processes are first, also once their numbers began again`() {
        #expect(OpenFileSearch.newestFirst([1, 40, 7, 300, 41, 200], last: 41) == [41, 40, 7, 1, 300, 200])
        #expect(OpenFileSearch.newestFirst([1, 40, 7], last: 0) == [40, 7, 1])
    }

    @Test func `a search knows what it has seen`() {
        let search = OpenFileSearch(for: [Self.noPipe], first: [getpid(), 0x3fff_fff0])
        #expect(search.hasSeen([getpid(), 0x3fff_fff0]) && !search.hasSeen([getpid(), 0x3fff_fff1]))
        #expect(search.shows(getpid()) && !search.shows(0x3fff_fff1) && !search.refused.contains(getpid()))
    }

    @Test func `a file that is not open is not found`() {
        #expect(OpenFileSearch(for: [Self.noPipe], first: [])[Self.noPipe] == [])
        #expect(OpenFileSearch(for: [Self.noPipe], first: [0x3fff_fff0])[Self.noPipe] == [])
    }
}
