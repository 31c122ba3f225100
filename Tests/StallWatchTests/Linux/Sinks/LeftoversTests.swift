import Foundation
import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

extension ProcessIdentity {
    /// A process that had this one's id before it.
    static var gone: ProcessIdentity {
        get throws {
            var gone = try #require(ProcessIdentity.current())
            gone.startTicks -= 1
            return gone
        }
    }
}

@Suite struct LeftoversTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test func `only what a process that is gone has left of the file is removed`() throws {
        let gone = try ProcessIdentity.gone
        let left = ["health", ".stallwatch-health"].map { AtomicFile.temporaryPath(for: $0, of: gone) }
        let others = [
            AtomicFile.temporaryPath(for: "health"), AtomicFile.temporaryPath(for: "health.json", of: gone),
            "health", "health.\(gone).tmp", "health.1.\(gone).tmp~", "health.1.tmp",
        ]
        for name in left + others { try scratch.write(name, "") }
        let folder = AtomicFile.temporaryPath(for: "health", of: gone)
        try #require(mkdir(scratch.path(folder), 0o700) == 0)
        FixedDirectory(scratch.path).removeLeftovers(of: ["health", ".stallwatch-health"])
        #expect(Set(scratch.names) == Set(others + [folder]))
    }

    /// It may still run there.
    @Test func `what a process of another PID namespace has left is removed after a day`() throws {
        let container = ProcessIdentity(pid: 1, startTicks: 9, pidNamespace: "pid:[4026532222]", host: "9f2c41d07a3b")
        let path = try scratch.write(AtomicFile.temporaryPath(for: "health", of: container), "")
        // As a health file of loops that have made no progress for long.
        try FileManager.default.setAttributes([.modificationDate: Date(timeIntervalSince1970: 1)], ofItemAtPath: path)
        let directory = FixedDirectory(scratch.path)
        directory.removeLeftovers(of: ["health"])
        #expect(scratch.names.count == 1)
        directory.removeLeftovers(of: ["health"], now: wallClockNow() + MonitorLock.longestSilence)
        #expect(scratch.names.isEmpty)
    }
}
