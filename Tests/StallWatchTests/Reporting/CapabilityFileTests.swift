import Foundation
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct CapabilityFileTests {
    private let capabilities = Capabilities(.init(pid: 4700), [.read: .works()])

    /// The descriptors of this process that are open for a file in `directory`.
    private func open(in directory: TemporaryDirectory) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").map { "/proc/self/fd/\($0)" }.filter {
            readLink($0)?.hasPrefix("\(directory.path)/.\(Capabilities.fileName).") ?? false
        }
    }

    @Test func `the file has no name and lasts as long as its owner`() throws {
        let directory = try TemporaryDirectory()
        var file = CapabilityFile(capabilities, in: directory.path)
        #expect(file != nil)
        #expect(directory.names.isEmpty)
        let paths = try open(in: directory)
        #expect(paths.count == 1)
        let bytes = try #require(paths.first.flatMap { AtomicFile.read($0, limit: 1 << 20) })
        #expect(Capabilities(jsonData: bytes) == capabilities)
        file = nil
        #expect(try open(in: directory).isEmpty)
    }

    @Test func `an unwritable directory gets no file`() {
        #expect(CapabilityFile(capabilities, in: "/nowhere") == nil)
    }
}
