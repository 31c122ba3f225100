import Glibc
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

@Suite struct LateStoreTests {
    @Test func `a store on a file system that hangs is opened when it answers`() throws {
        let gate = Semaphore()
        let late = try FileCreation.inTime(within: 0) { () throws(StallWatchError) in
            gate.wait(until: endOfPatience)
            return true
        }
        #expect(late == nil)
        gate.post()
        #expect(try FileCreation.inTime { () throws(StallWatchError) in true } == true)
        let box = Collected<StallReport>()
        var answers = false
        let store = LateStore { () throws(StallWatchError) in
            guard answers else { throw StallWatchError(.unwritableReports, "it hangs") }
            return ClosureSink(body: box.add)
        }
        store.start()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        #expect(throws: StallWatchError.self) { try store.receive(.init(ended: report)) }
        answers = true
        try store.receive(.init(ended: report))
        #expect(box.all == [report])
    }

    @Test func `what does not last refuses no monitor`() throws {
        func opened(_ error: Int32) throws -> Bool? {
            try FileCreation.inTime { () throws(StallWatchError) -> Bool in
                throw StallWatchError(.unwritableReports, "it cannot be made", errno: error)
            }
        }
        #expect(try opened(ENOSPC) == nil)
        #expect(try opened(EDQUOT) == nil)
        for error in [EWOULDBLOCK, EMFILE, ENFILE, EINTR] { #expect(try opened(error) == nil) }
        for error in [EACCES, EIO] { #expect(throws: StallWatchError.self) { try opened(error) } }
    }

    @Test func `a file that another process keeps locked is written later`() throws {
        let scratch = try TemporaryDirectory()
        let path = try scratch.write("stalls.ndjson", "")
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        try #require(flock(descriptor, LOCK_EX) == 0)
        let description = try #require(try ReportOutput.ndjson(path: path).factory()(ReportCounts()) { _ in })
        let store = description.make()
        let report = Reporter.Settings.fixture().builder().report(of: .fixture())
        do throws(StallWatchError) {
            try store.receive(.init(ended: report))
            Issue.record("it is locked")
        } catch {
            #expect(error.description.contains("is locked: end the process that keeps its lock"))
        }
        // A child of another test may have the file, too, for a moment.
        flock(descriptor, LOCK_UN)
        close(descriptor)
        try store.receive(.init(ended: report))
        #expect(AtomicFile.read(path, limit: 1 << 20) == report.jsonLine())
    }
}
