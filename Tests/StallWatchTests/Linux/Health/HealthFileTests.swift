import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct HealthFileTests {
    private let directory: TemporaryDirectory
    private let failures = Failures()

    private final class Failures: Sendable {
        let all = Mutex<[(StallWatchError, Bool)]>([])
    }

    init() throws { directory = try TemporaryDirectory() }

    private func file(_ name: String = "health") throws -> HealthFile {
        try HealthFile(path: directory.path(name), interval: 200_000_000) { [failures] error, isFirst in
            failures.all.withLock { $0.append((error, isFirst)) }
        }
    }

    private func record(progressedAt seconds: Int64) -> HealthRecord {
        let time = Timestamp(microsecondsSince1970: seconds * 1_000_000 + 250_000)
        return HealthRecord(
            state: .ok, checkedAt: time, checkedAtMonotonicMilliseconds: 1, progressedAt: time,
            process: .init(pid: 1), loops: [])
    }

    /// The unnamed files that this process has open in the directory.
    private func pointers() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").map { "/proc/self/fd/\($0)" }.filter {
            readLink($0)?.hasPrefix("\(directory.path)/.\(HealthRecord.pointerName).") ?? false
        }
    }

    @Test func `the file is a record, as old as the progress`() throws {
        let file = try file()
        #expect(directory.names == [], "nothing is written before the first record")
        #expect(file.publish(record(progressedAt: 1_795_248_000), at: 1_000) == 200_001_000)
        #expect(directory.names == ["health"])
        let bytes = try #require(AtomicFile.read(directory.path("health"), limit: 1 << 20))
        #expect(HealthRecord(jsonData: bytes) == record(progressedAt: 1_795_248_000))
        let status = try #require(FileStatus(path: directory.path("health")))
        #expect(status.changedAt == 1_795_248_000_250_000_000)
        #expect(status.permissions == 0o600)
    }

    @Test func `without an answer the file stays as it is`() throws {
        let file = try file()
        _ = file.publish(record(progressedAt: 1), at: 0)
        let before = try #require(FileStatus(path: directory.path("health")))
        #expect(file.publish(nil, at: 500) == 200_000_500)
        #expect(FileStatus(path: directory.path("health"))?.identity == before.identity)
    }

    @Test func `an unnamed file leads to it until the end`() throws {
        let file = try file()
        _ = file.publish(record(progressedAt: 1), at: 0)
        let found = try pointers()
        #expect(found.count == 1)
        let bytes = try #require(found.first.flatMap { AtomicFile.read($0, limit: 1 << 20) })
        #expect(String(decoding: bytes, as: UTF8.self) == directory.path("health"))
        file.finish(record(progressedAt: 2))
        #expect(try pointers() == [])
        #expect(FileStatus(path: directory.path("health"))?.changedAt == 2_250_000_000)
    }

    @Test func `a failure is reported, and the next attempt may succeed`() throws {
        let file = try file("folder")
        try FileManager.default.createDirectory(atPath: directory.path("folder"), withIntermediateDirectories: false)
        for _ in 0..<2 { _ = file.publish(record(progressedAt: 1), at: 0) }
        #expect(failures.all.withLock { $0.map(\.1) } == [true, false])
        #expect(failures.all.withLock { $0.first?.0.code } == .unwritableReports)
        #expect(directory.names == ["folder"], "no temporary file is left")
        try FileManager.default.removeItem(atPath: directory.path("folder"))
        _ = file.publish(record(progressedAt: 1), at: 0)
        #expect(FileStatus(path: directory.path("folder"))?.isRegular == true)
    }

    @Test func `a path that cannot be written is refused at once`() throws {
        let missing = #expect(throws: StallWatchError.self) { try file("no/health") }
        #expect(missing?.code == .unwritableReports)
        #expect(
            missing?.message
                == "the health file \(directory.path("no/health")) cannot be written: create its directory, or make it writable"
        )
        let folder = #expect(throws: StallWatchError.self) { try HealthFile(path: "/tmp", interval: 1) { _, _ in } }
        #expect(folder?.message == "the health file /tmp is not a regular file: name another path")
    }
}
