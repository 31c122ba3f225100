import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

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
