import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct AtomicFileTests {
    /// Opening a FIFO for writing waits for a reader, for ever.
    @Test(.timeLimit(.minutes(1))) func `a FIFO at a file's name is replaced, and does not block`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path("file")
        try #require(mkfifo(path, 0o600) == 0)
        #expect(try AtomicFile.write([1, 2], to: path) == .done)
        #expect(AtomicFile.read(path, limit: 10) == [1, 2])
    }

    @Test func `a symbolic link at a file's name is replaced, and its target stays`() throws {
        let directory = try TemporaryDirectory()
        let target = try directory.write("target", "old")
        try #require(symlink(target, directory.path("link")) == 0)
        try AtomicFile.write([1], to: directory.path("link"))
        #expect(AtomicFile.read(target, limit: 10) == Array("old".utf8))
    }

    @Test func `no temporary file has a name that can be foreseen`() throws {
        let directory = try TemporaryDirectory()
        #expect(Set((0..<10).map { _ in AtomicFile.temporaryPath(for: "a") }).count == 10)
        // What the process would have used: the file is replaced although the name is taken.
        try #require(mkfifo(directory.path("state.\(getpid()).tmp"), 0o600) == 0)
        try AtomicFile.replace(directory.path("state"), with: [1])
        try AtomicFile.replaceUnflushed(directory.path("state"), with: [2], changedAt: 0)
        #expect(AtomicFile.read(directory.path("state"), limit: 10) == [2])
        #expect(directory.names.count == 2)
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
