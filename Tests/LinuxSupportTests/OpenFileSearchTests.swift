import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport

@Suite struct OpenFileSearchTests {
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
        let link = try #require(readLink("/proc/self/fd/\(writeEnd)"))
        let search = OpenFileSearch(for: link, first: [getpid()])
        #expect(search.found.contains { $0.process == getpid() && $0.number == writeEnd && $0.isWritable })
        #expect(search.found.contains { $0.process == process.processIdentifier && $0.isReadable && !$0.isWritable })
        #expect(!search.isCut)
        let own = OpenFileSearch(for: link, first: [getpid()], others: false)
        #expect(Set(own.found.map(\.process)) == [getpid()])
    }

    @Test func `a file that is not open is not found`() {
        #expect(OpenFileSearch(for: "pipe:[0]", first: []).found == [])
        #expect(OpenFileSearch(for: "pipe:[0]", first: [0x3fff_fff0], others: false).found == [])
    }
}
