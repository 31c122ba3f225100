import TestSupport
import Testing

@testable import StallReports

@Suite struct ThreadActivityTests {
    private func activity(
        _ lock: StallReport.LockKind?, owner: Int32? = nil, isDeadlock: Bool = false, reason: String? = nil,
        function: String? = "f"
    ) -> String {
        let owners = owner.map { id in
            [StallReport.LockOwner(thread: StallReport.ThreadDescription(id: id, name: "worker"), isRunning: false)]
        }
        return StallReport.OtherThread(
            thread: StallReport.ThreadDescription(id: 7, name: nil), heldMicroseconds: 0,
            systemCall: StallReport.SystemCall(number: 202, name: "futex"),
            lock: lock.map {
                StallReport.Lock(
                    kind: $0, function: function, isDeadlock: isDeadlock, owners: owners ?? [], reason: reason)
            }
        ).activity
    }

    @Test func `a thread that waits for a lock names the owner`() {
        #expect(activity(.pthreadMutex, owner: 9) == "waits in f for the mutex, which thread 9 \"worker\" holds")
        #expect(
            activity(.pthreadMutex, owner: 9, isDeadlock: true)
                == "is in a deadlock: waits in f for the mutex, which thread 9 \"worker\" holds")
        #expect(activity(.threadJoin, owner: 9) == "waits in f for the end of thread 9 \"worker\"")
        #expect(activity(.once, owner: 9).hasSuffix("which thread 9 \"worker\" runs"))
    }

    @Test func `a lock without an owner`() {
        #expect(activity(.dispatchSemaphore) == "waits in f for a semaphore, which any thread may end")
        #expect(
            activity(.pthreadMutex, reason: "it was just released", function: nil)
                == "waits for the mutex; its owner is not known: it was just released")
    }

    @Test func `other threads`() {
        #expect(activity(nil) == "waits in futex")
        var thread = StallReport.OtherThread(
            thread: StallReport.ThreadDescription(id: 7, name: nil), threadState: .running, heldMicroseconds: 0)
        #expect(thread.activity == "is on a CPU or ready to run")
        thread.threadState = .blocked
        #expect(thread.activity == "waits")
        thread.threadState = nil
        thread.reason = "the thread has ended"
        #expect(thread.activity == "was not captured: the thread has ended")
    }

    @Test func `paths in the system calls of other threads are shortened`() throws {
        var report = try StallReport.literal()
        report.otherThreads = [
            StallReport.OtherThread(
                thread: StallReport.ThreadDescription(id: 7, name: nil), heldMicroseconds: 0,
                systemCall: StallReport.SystemCall(number: 74, name: "fsync", target: "/var/lib/notes.db"))
        ]
        report.shortenPaths(.fileNames)
        #expect(report.otherThreads?.first?.systemCall?.target == "notes.db")
    }

    @Test func `a wrong stack of an owner is a fault`() throws {
        var report = try StallReport.literal()
        let owner = StallReport.LockOwner(
            thread: StallReport.ThreadDescription(id: 9, name: nil), stack: 99, isRunning: false)
        report.otherThreads = [
            StallReport.OtherThread(
                thread: StallReport.ThreadDescription(id: 7, name: nil), heldMicroseconds: 0,
                lock: StallReport.Lock(kind: .pthreadMutex, isDeadlock: false, owners: [owner]))
        ]
        #expect(throws: StallWatchError.self) { try StallReport(jsonData: report.jsonData()) }
    }
}
