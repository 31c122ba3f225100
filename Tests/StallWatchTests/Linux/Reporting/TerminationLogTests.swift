import Glibc
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct TerminationLogTests {
    private func ongoing() throws -> StallReport {
        var report = try StallReport.literal()
        report.state = .ongoing
        return report
    }

    @Test func `the message has the sentence, the cause and the report`() throws {
        var report = try ongoing()
        report.cause = .fixture(kind: .lock, summary: "Blocked in pthread_mutex_lock.")
        #expect(
            String(decoding: TerminationLog.message(report), as: UTF8.self) == """
                main stalled and has not come back after 812 ms in NoteStore.save(_:) (timer)
                Blocked in pthread_mutex_lock.
                report: \(report.fileName)

                """)
    }

    @Test func `a message has at most 4096 bytes, and whole characters`() throws {
        var report = try ongoing()
        report.loop.label = String(repeating: "ä", count: 5_000)
        let message = TerminationLog.message(report)
        #expect(message.count == 4_096)
        #expect(String(validating: message, as: UTF8.self) != nil)
    }

    @Test func `it replaces what is in the file`() throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write("log", String(repeating: "old", count: 3_000))
        let identity = FileStatus(path: path)?.identity
        #expect(TerminationLog.writeInTime(Array("new\n".utf8), to: path) == nil)
        #expect(AtomicFile.read(path, limit: 1 << 20) == Array("new\n".utf8))
        #expect(FileStatus(path: path)?.identity == identity, "a mounted file cannot be replaced by another one")
        #expect(TerminationLog.writeInTime([], to: directory.path("made")) == nil)
        #expect(directory.names == ["log", "made"])
    }

    @Test func `a file that cannot be written is an error and no wait`() throws {
        let directory = try TemporaryDirectory()
        mkfifo(directory.path("fifo"), 0o600)
        let begun = monotonicNow()
        for path in [directory.path("fifo"), directory.path("no/log"), directory.path] {
            let error = try #require(TerminationLog.writeInTime([1], to: path))
            #expect(error.message == "the termination log \(path) cannot be opened: name a file that may be written")
        }
        #expect(monotonicNow() - begun < TerminationLog.timeLimit)
    }
}
