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
        #expect(activity(.dispatchSemaphore) == "waits in f until a thread signals the semaphore")
        #expect(activity(.systemSemaphore) == "waits in f until a thread changes the semaphore")
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
}

@Suite struct ActivityTests {
    @Test func aSaturationIsDescribedWithItsShares() {
        var activity = StallReport.Activity(turnsPerSecond: 498.6, busyShare: 0.991)
        activity.cpuShare = 0.5
        #expect(
            activity.sentence()
                == "Busy for 99 % of the time: turned 499 times a second, for 2 ms on average; 50 % of a CPU")
    }

    @Test func aSpinIsDescribedWithItsDescriptor() {
        var activity = StallReport.Activity(turnsPerSecond: 1_234_567)
        activity.cpuShare = 0.367
        activity.readyDescriptor = "descriptor 7, pipe:[4711]"
        #expect(
            activity.sentence() == "Woke 1,234,567 times a second for descriptor 7, pipe:[4711], which is always "
                + "readable and never read; 37 % of a CPU")
        activity.readyDescriptor = nil
        #expect(activity.sentence() == "Turned 1,234,567 times a second without work; 37 % of a CPU")
        var empty = StallReport.Activity(turnsPerSecond: 0)
        empty.isModeEmpty = true
        #expect(empty.sentence() == "The mode has no sources, so each run of the loop returns at once")
    }

    @Test func aStarvingModeIsDescribedWithWhatWaits() {
        var activity = StallReport.Activity(turnsPerSecond: 0)
        activity.awaitedMode = "kCFRunLoopDefaultMode"
        activity.isTimerDue = true
        activity.hasMainQueueWork = true
        #expect(
            activity.sentence() == "While the loop ran in another mode, "
                + "a timer of the default mode was due and the main queue had work")
        activity.isTimerDue = false
        #expect(activity.sentence() == "While the loop ran in another mode, the main queue had work")
        #expect(activity.sentence(in: "tracking") == "While the loop ran in the mode tracking, the main queue had work")
    }

    @Test func everyKindHasItsVerb() {
        let kinds: [StallKind] = [.stall, .starvation, .saturation, .spinning]
        #expect(kinds.map(\.verbs.present) == ["stalls", "keeps work waiting", "is saturated", "spins"])
        #expect(kinds.map(\.verbs.past) == ["stalled for", "kept work waiting for", "was saturated for", "spun for"])
        #expect(kinds.map(\.verbs.perfect).suffix(2) == ["has been saturated for", "has been spinning for"])
    }
}
