import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct PathsTests {
    @Test(
        arguments: [
            [], Array("/opt/app".utf8), Array("/opt/Ä/日本/🎈e\u{301}".utf8), [0x2f, 0xe9], [0x2f, 0xff, 0x2e, 0xc3],
            [0xee, 0xbe, 0x80], [0xee, 0x80, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f, 0x8e],
            [0xc3, 0xa9, 0xe9, 0xc3, 0xa9],
        ] as [[UInt8]])
    func `any bytes come back from their text`(bytes: [UInt8]) {
        let text = pathText(bytes)
        #expect(pathBytes(text) == bytes.map { CChar(bitPattern: $0) } + [0])
        if let valid = String(validating: bytes, as: UTF8.self), !bytes.contains(0xee) { #expect(text == valid) }
    }

    @Test func `a file whose name is not UTF-8 is found, read and known again`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/" + pathText([0x63, 0x61, 0x66, 0xe9])
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        write(file, "x", 1)
        #expect(directoryEntries(directory.path)?.contains { $0.name == fileName(path) } == true)
        #expect(readLink("/proc/self/fd/\(file)") == path)
        #expect(readSmallFile(path) == "x" && access(path, R_OK) == 0)
        #expect(FileStatus(path: path)?.identity == FileStatus(descriptor: file)?.identity)
    }

    @Test func `a directory whose name is not UTF-8 keeps its files`() throws {
        let parent = try TemporaryDirectory()
        let (path, name) = (parent.path + "/" + pathText([0xe9]), pathText([0x61, 0xff]))
        try #require(mkdir(pathBytes(path), 0o700) == 0)
        let directory = FixedDirectory(path)
        try AtomicFile.replace(name, in: directory, with: [7])
        #expect(names(in: directory).contains(name))
        #expect(AtomicFile.read(name, in: directory, limit: 1) == [7])
        try AtomicFile.remove(name, in: directory)
        #expect(FileStatus(path: name, in: directory) == nil)
    }
}
