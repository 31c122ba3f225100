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

    @Test func `a full disk refuses no monitor`() throws {
        func opened(_ error: Int32) throws -> Bool? {
            try FileCreation.inTime { () throws(StallWatchError) -> Bool in
                throw StallWatchError(.unwritableReports, "it cannot be made", errno: error)
            }
        }
        #expect(try opened(ENOSPC) == nil)
        #expect(try opened(EDQUOT) == nil)
        #expect(throws: StallWatchError.self) { try opened(EACCES) }
    }
}
