import Testing

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// The locks of threads beside the loop's in a report.
@Suite struct OtherThreadLockTests {
    private func thread(_ id: Int32, waitsFor owner: Int32?, isDeadlock: Bool = false) -> StallRecord.OtherThread {
        let memory: (any MemoryReading)? = nil
        let call = SystemCall(number: 202, arguments: [0, 0, 0, 0, 0, 0], stackPointer: 0, programCounter: 0)
        var wait = ThreadWait(call: DescribedCall(call, memory: memory), runs: 1)
        wait.lock = owner.map {
            AwaitedLock(kind: .pthreadMutex, address: 16, function: "pthread_mutex_lock", ownership: .thread($0))
        }
        wait.isDeadlock = isDeadlock
        return StallRecord.OtherThread(
            thread: ThreadIdentity(id: id, name: "worker-\(id)"), stack: .failure(CaptureError(description: "gone")),
            wait: wait)
    }

    private func locks(_ threads: [StallRecord.OtherThread]) -> [StallReport.Lock?] {
        var record = StallRecord.stub()
        record.otherThreads = threads
        return (ReportBuilder.stub().rawReport(of: record).otherThreads ?? []).map(\.lock)
    }

    @Test func `a lock has the owner by the name that it was captured with`() {
        let found = locks([thread(1, waitsFor: 2, isDeadlock: true), thread(2, waitsFor: 1, isDeadlock: true)])
        #expect(found.map { $0?.owners.first?.thread.name } == ["worker-2", "worker-1"])
        #expect(found.map { $0?.isDeadlock } == [true, true])
    }

    @Test func `the loop's thread may be the owner`() {
        #expect(locks([thread(1, waitsFor: 4700)]).first??.owners.first?.thread.name == "notes")
    }

    @Test func `a thread that waits for no lock has none`() {
        #expect(locks([thread(1, waitsFor: nil)]) == [nil])
    }
}
