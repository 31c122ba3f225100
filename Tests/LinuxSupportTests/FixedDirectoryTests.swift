import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct FixedDirectoryTests {
    private let scratch = TemporaryDirectory.ofTest()

    private func makeDirectory(_ name: String) throws -> FixedDirectory {
        try #require(mkdir(scratch.path(name), 0o700) == 0)
        return FixedDirectory(scratch.path(name))
    }

    /// As after chroot(2) or with another working directory, its path leads elsewhere.
    @Test func `files go where the directory is, not where its path leads`() throws {
        let directory = try makeDirectory("a")
        try #require(rename(scratch.path("a"), scratch.path("b")) == 0)
        _ = try makeDirectory("a")
        try AtomicFile.replace("file", in: directory, with: [1])
        #expect(AtomicFile.read(scratch.path("b/file"), limit: 10) == [1])
        #expect(AtomicFile.read("file", in: directory, limit: 10) == [1])
        #expect(AtomicFile.tail("file", in: directory, count: 1) == [1])
        #expect(FileStatus(path: "file", in: directory)?.size == 1)
        #expect(names(in: directory).sorted() == [".", "..", "file"])
        try AtomicFile.rename("file", to: "other", in: directory)
        try AtomicFile.remove("other", in: directory)
        #expect(names(in: directory).count == 2 && FileStatus(path: "other", in: directory) == nil)
    }

    @Test func `a directory is reached although its path leads elsewhere`() throws {
        let directory = try makeDirectory("a")
        #expect(directory.reachablePath == scratch.path("a"))
        try #require(rename(scratch.path("a"), scratch.path("b")) == 0)
        _ = try makeDirectory("a")
        #expect(FileStatus(path: directory.reachablePath)?.identity == FileStatus(path: scratch.path("b"))?.identity)
    }

    /// Daemons close all descriptors, and the number may be another file's then.
    @Test func `a descriptor that the program has closed is opened again`() throws {
        let directory = try makeDirectory("a")
        let number = try directory.descriptor()
        try #require(dup2(STDIN_FILENO, number) == number)
        let again = try directory.descriptor()
        defer { close(number) }
        #expect(again != number)
        try AtomicFile.write([1], to: "file", in: directory)
        #expect(FileStatus(path: scratch.path("a/file")) != nil)
        #expect(FileStatus(descriptor: number) != nil, "the program's file stays open")
    }

    /// Its file system may hang.
    @Test func `a directory that is not opened at once is opened when it is used`() throws {
        let file = FixedFile(scratch.path("later/file"), isOpened: false)
        #expect(file.name == "file" && file.path == scratch.path("later/file"))
        _ = try makeDirectory("later")
        try AtomicFile.write([1], to: file.name, in: file.directory)
        try #require(rename(scratch.path("later"), scratch.path("moved")) == 0)
        #expect(AtomicFile.read(file.name, in: file.directory, limit: 1) == [1])
    }

    @Test func `a directory that was missing is opened when it exists`() throws {
        let directory = FixedDirectory(scratch.path("late"))
        let error = #expect(throws: SystemError.self) { try AtomicFile.write([], to: "file", in: directory) }
        #expect(error?.errno == ENOENT && error?.message.contains(scratch.path("late")) == true)
        #expect(AtomicFile.read("file", in: directory, limit: 1) == nil && names(in: directory).isEmpty)
        try #require(mkdir(directory.path, 0o700) == 0)
        try AtomicFile.write([], to: "file", in: directory)
    }

    @Test func `a removed directory is followed again by its path`() throws {
        let directory = try makeDirectory("a")
        try #require(rmdir(directory.path) == 0 && mkdir(directory.path, 0o700) == 0)
        let error = #expect(throws: SystemError.self) { try AtomicFile.write([], to: "file", in: directory) }
        #expect(error?.errno == ENOENT)
        directory.reopen()
        try AtomicFile.write([], to: "file", in: directory)
    }

    @Test func `a directory that cannot be read takes files`() throws {
        let directory = try makeDirectory("a")
        try #require(chmod(directory.path, 0o300) == 0)
        try AtomicFile.write([1], to: "file", in: FixedDirectory(directory.path))
    }

    @Test(arguments: [
        ("/var/log/stalls", "/var/log", "stalls"), ("/health", "/", "health"), ("/a//b", "/a/", "b"), ("/a/", "/a", ""),
    ])
    func `a file is a directory and a name`(path: String, directory: String, name: String) {
        let file = FixedFile(path)
        #expect(file.directory.path == directory && file.name == name)
        #expect(FixedFile("x").path == absolutePath("x"))
    }
}
