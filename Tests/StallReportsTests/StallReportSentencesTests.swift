import TestSupport
import Testing

@testable import StallReports

@Suite struct CauseSentenceTests {
    private func owner(
        _ thread: Int32, _ name: String?, waitsFor: StallReport.LockKind? = nil, label: String? = nil,
        isRunning: Bool = false
    ) -> StallReport.LockOwner {
        StallReport.LockOwner(
            thread: .init(id: thread, name: name), isRunning: isRunning, waitsFor: waitsFor, waitsForLabel: label
        )
    }

    private func mutex(_ owners: [StallReport.LockOwner], reason: String? = nil, isDeadlock: Bool = false)
        -> StallReport.Lock
    {
        StallReport.Lock(
            kind: .pthreadMutex, function: "pthread_mutex_lock", isDeadlock: isDeadlock, owners: owners, reason: reason)
    }

    private func sentence(_ kind: StallReport.CauseKind, _ lock: StallReport.Lock? = nil, function: String? = nil)
        -> String
    {
        StallReport.Cause(
            kind: kind, confidence: .certain, onCPUMilliseconds: 10, runQueueMilliseconds: 20.4,
            blockedMilliseconds: 469.6, uncertaintyMilliseconds: 0, majorFaults: 7, pagedFile: "/data/pages",
            function: function, lock: lock
        ).sentence
    }

    @Test func `a lock is described with its owner and the owner's state`() {
        #expect(
            sentence(.lock, mutex([owner(2, "saver", isRunning: true)]))
                == "Blocked for 470 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2 \"saver\", which is running."
        )
        let chain = StallReport.Lock(
            kind: .dispatchQueue, function: "dispatch_sync", label: "io", isDeadlock: false,
            owners: [owner(2, nil, waitsFor: .pthreadMutex), owner(3, "last")])
        #expect(
            sentence(.lock, chain)
                == "Blocked for 470 of 500 ms in dispatch_sync; the dispatch queue \"io\" is held by thread 2, "
                + "which waits for the mutex held by thread 3 \"last\", which is waiting."
        )
    }

    @Test func `an owner that waited for a CPU is not said to run`() {
        var starved = owner(2, "saver", isRunning: true)
        starved.time = .init(observedMilliseconds: 400, onCPUMilliseconds: 9.6, runQueueMilliseconds: 390.4)
        let start = "Blocked for 470 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2 \"saver\", which "
        #expect(sentence(.lock, mutex([starved])) == start + "waited for a CPU for 390 of 400 ms.")
        var blocked = starved
        blocked.time = StallReport.OwnerTime(observedMilliseconds: 400, onCPUMilliseconds: 2, runQueueMilliseconds: 45)
        #expect(sentence(.lock, mutex([blocked])) == start + "was blocked for 353 of 400 ms.")
        starved.priorityInversion = .init(nice: 10, waiterNice: 0)
        #expect(
            sentence(.lock, mutex([starved]))
                == start + "waited for a CPU for 390 of 400 ms (priority inversion: its nice value is 10, that of the "
                + "stalled thread 0; raise the QoS of its work)."
        )
        starved.priorityInversion?.queue = "export"
        #expect(sentence(.lock, mutex([starved])).hasSuffix("raise the QoS of the queue \"export\")."))
        starved.time = .init(observedMilliseconds: 400, onCPUMilliseconds: 300, runQueueMilliseconds: 100)
        #expect(sentence(.lock, mutex([starved])) == start + "is running.")
    }

    @Test func `a call in the kernel is named with its target and time`() {
        func sentence(_ call: StallReport.SystemCall?, kernelShare: Double?) -> String {
            StallReport.Cause(
                kind: .cpu, confidence: .certain, onCPUMilliseconds: 1_100, runQueueMilliseconds: 10,
                blockedMilliseconds: 0, uncertaintyMilliseconds: 0, kernelShare: kernelShare, systemCall: call
            ).sentence
        }
        #expect(
            sentence(.init(number: 0, name: "read", target: "/data/catalogue.bin"), kernelShare: 1)
                == "In read(2) of /data/catalogue.bin for 1100 of 1110 ms, copying in the kernel."
        )
        #expect(
            sentence(.init(number: 11, name: "munmap"), kernelShare: 0.9)
                == "In munmap(2) for 990 of 1110 ms, running in the kernel."
        )
        #expect(sentence(.init(number: 0, name: "read"), kernelShare: 0.4) == "On CPU for 1100 of 1110 ms.")
    }

    @Test func `both parts of a turn that ran and waited for a CPU are named`() {
        func sentence(_ kind: StallReport.CauseKind, onCPU: Double, runQueue: Double) -> String {
            StallReport.Cause(
                kind: kind, confidence: .certain, onCPUMilliseconds: onCPU, runQueueMilliseconds: runQueue,
                blockedMilliseconds: 0, uncertaintyMilliseconds: 0
            ).sentence
        }
        #expect(sentence(.cpu, onCPU: 209, runQueue: 194) == "On CPU for 209 of 403 ms; waiting for a CPU for 194 ms.")
        #expect(sentence(.cpu, onCPU: 302, runQueue: 100) == "On CPU for 302 of 402 ms; waiting for a CPU for 100 ms.")
        #expect(sentence(.cpu, onCPU: 302, runQueue: 30) == "On CPU for 302 of 332 ms.")
        #expect(
            sentence(.cpuContention, onCPU: 194, runQueue: 209)
                == "Ready to run but without a CPU for 209 of 403 ms: other threads used the CPUs; on CPU for 194 ms."
        )
    }

    @Test func `an initialization is described as run by its owner`() {
        let once = StallReport.Lock(
            kind: .once, function: "swift_once", isDeadlock: false, owners: [owner(2, "init", isRunning: true)])
        #expect(
            sentence(.lock, once)
                == "Blocked for 470 of 500 ms in swift_once; the one-time initialization is run by thread 2 \"init\", "
                + "which is running."
        )
    }

    @Test func aMissingOrUnknownOwnerIsStated() {
        let semaphore = StallReport.Lock(
            kind: .dispatchSemaphore, function: "dispatch_semaphore_wait", isDeadlock: false, owners: [],
            reason: "this kind has no owner")
        #expect(
            sentence(.lock, semaphore)
                == "Blocked for 470 of 500 ms in dispatch_semaphore_wait, until a thread signals it: a semaphore has no owner, "
                + "so the thread to wait for is not known."
        )
        #expect(
            sentence(.lock, mutex([], reason: "it was just released"))
                == "Blocked for 470 of 500 ms in pthread_mutex_lock, for the mutex; its owner is not known: it was just released."
        )
    }

    @Test func aDeadlockIsDescribedLockByLock() {
        let circle = mutex(
            [owner(2, "saver", waitsFor: .dispatchQueue, label: "main"), owner(1, "app")], isDeadlock: true)
        #expect(
            sentence(.deadlock, circle)
                == "Deadlock: waits for the mutex held by thread 2 \"saver\", which waits for the dispatch queue \"main\" "
                + "held by thread 1 \"app\"."
        )
        let alone = mutex([owner(1, "app", waitsFor: .pthreadMutex)], isDeadlock: true)
        #expect(sentence(.deadlock, alone) == "Deadlock: thread 1 \"app\" waits for the mutex, which it holds itself.")
    }

    @Test func otherCausesAreDescribedWithTheirNumbers() {
        #expect(sentence(.cpu) == "On CPU for 10 of 500 ms; blocked for 470 ms.")
        #expect(
            sentence(.cpuContention)
                == "Ready to run but without a CPU for 20 of 500 ms: other threads used the CPUs; blocked for 470 ms."
        )
        #expect(sentence(.io, function: "fsync") == "Blocked for 470 of 500 ms in fsync.")
        #expect(sentence(.syscall) == "Blocked for 470 of 500 ms in a system call.")
        #expect(
            sentence(.paging)
                == "Waited for memory pages for 470 of 500 ms: 7 page faults went to a disk, the last one for /data/pages."
        )
    }

    @Test func `pages that no disk supplied are not said to come from one`() {
        let cause = StallReport.Cause(
            kind: .paging, confidence: .certain, onCPUMilliseconds: 1, runQueueMilliseconds: 0,
            blockedMilliseconds: 600, uncertaintyMilliseconds: 0, minorFaults: 1, voluntarySwitches: 1
        )
        #expect(
            cause.sentence
                == "Waited for memory pages for 600 of 601 ms, though no finished page fault went to a disk."
        )
    }

    @Test func `many short sleeps are a loop that polls`() {
        var cause = StallReport.Cause(
            kind: .sleep, confidence: .certain, onCPUMilliseconds: 10, runQueueMilliseconds: 0,
            blockedMilliseconds: 390, uncertaintyMilliseconds: 0, voluntarySwitches: 380,
            systemCall: .init(number: 230, name: "clock_nanosleep", target: "1 ms")
        )
        #expect(
            cause.sentence
                == "Slept again and again, for 390 of 400 ms in all, in clock_nanosleep(1 ms): it polls for something.")
        cause.systemCall?.target = "390 ms"
        #expect(cause.sentence == "Slept for 390 of 400 ms in clock_nanosleep(390 ms).")
    }

    @Test func `a CPU that the host took was not used by other threads`() {
        var cause = StallReport.Cause(
            kind: .cpuContention, confidence: .likely, onCPUMilliseconds: 200, runQueueMilliseconds: 800,
            blockedMilliseconds: 0, uncertaintyMilliseconds: 0)
        cause.stolenMilliseconds = 390
        #expect(cause.sentence.contains("other threads used the CPUs"))
        cause.stolenMilliseconds = 400
        #expect(
            cause.sentence
                == "Ready to run but without a CPU for 800 of 1000 ms: the host of the virtual machine used a CPU itself "
                + "for 400 ms; on CPU for 200 ms.")
    }

    @Test func `work in a call that also waits is part of its sentence`() {
        let cause = StallReport.Cause(
            kind: .io, confidence: .certain, onCPUMilliseconds: 237, runQueueMilliseconds: 50, blockedMilliseconds: 217,
            uncertaintyMilliseconds: 0, kernelShare: 0.9,
            systemCall: .init(number: 74, name: "fsync", target: "/data/wal")
        )
        #expect(cause.sentence == "Blocked for 217 ms and on CPU for 237 of 504 ms in fsync(/data/wal).")
    }
}

@Suite struct StallReportSummaryTests {
    @Test func theHeadlineOfAnEndedStallIsOneSentence() throws {
        #expect(try StallReport.literal().headline == "main stalled for 812 ms in NoteStore.save(_:) (timer)")
    }

    @Test func theSummaryAddsPlaceAndCause() throws {
        var report = try StallReport.literal()
        report.culprit?.file = "/src/notes/NoteStore.swift"
        report.cause = StallReport.Cause(
            kind: .sleep, summary: "Slept for 812 of 812 ms in usleep.", confidence: .certain, onCPUMilliseconds: 0,
            runQueueMilliseconds: 0, blockedMilliseconds: 812, uncertaintyMilliseconds: 0)
        #expect(
            report.summary
                == "main stalled for 812 ms in NoteStore.save(_:) (timer) at NoteStore.swift:88. "
                + "Slept for 812 of 812 ms in usleep.")
        report.cause = nil
        report.culprit?.file = nil
        #expect(report.summary == report.headline)
    }

    /// A report whose stack shows memmove, called by `NoteStore.save(_:)`, called by `refresh()`, with `cause`'s sentence.
    private func report(_ cause: StallReport.Cause, inner: String = "memmove@GLIBC_2.14") throws -> StallReport {
        var report = try StallReport.literal()
        report.cause = cause
        report.cause?.summary = cause.sentence
        report.samples[0].threadState = cause.kind == .cpu ? .running : .blocked
        let before = report
        report.stacks = [[0, 1, 2, 3], [4]]
        report.frames = [
            .init(image: 1, offset: "0x1", function: inner, symbol: inner, isInApp: false, kind: .code),
            .init(image: 0, offset: "0x2", function: "NoteStore.save(_:)", isInApp: true, kind: .code),
            .init(image: 0, offset: "0x3", function: "refresh()", isInApp: true, kind: .code),
            .init(image: 0, offset: "0x4", function: "main", isInApp: true, kind: .code),
            .init(
                image: 0, offset: "0x5", function: "writeWAL()", file: "/src/WAL.swift", line: 7, isInApp: true,
                kind: .code),
        ]
        report.nameCause(since: before)
        return report
    }

    private func named(_ cause: StallReport.Cause, inner: String = "memmove@GLIBC_2.14") throws -> String? {
        try report(cause, inner: inner).cause?.summary
    }

    private func cause(
        _ kind: StallReport.CauseKind, onCPU: Double, blocked: Double, call: StallReport.SystemCall? = nil,
        lock: StallReport.Lock? = nil
    ) -> StallReport.Cause {
        .init(
            kind: kind, confidence: .certain, onCPUMilliseconds: onCPU, runQueueMilliseconds: 0,
            blockedMilliseconds: blocked, uncertaintyMilliseconds: 0, kernelShare: 0.6, systemCall: call, lock: lock)
    }

    @Test func `the sentence names functions once they are known`() throws {
        let clock = StallReport.SystemCall(number: 228, name: "clock_gettime")
        #expect(
            try named(cause(.cpu, onCPU: 600, blocked: 400, call: clock))
                == "On CPU for 600 of 1000 ms, 60 % of it in the kernel, in memmove, called by NoteStore.save(_:), "
                + "called by refresh(); blocked for 400 ms.")
        let owner = StallReport.LockOwner(thread: .init(id: 2, name: "writer"), stack: 1, isRunning: true)
        let lock = StallReport.Lock(
            kind: .pthreadMutex, function: "pthread_mutex_lock", isDeadlock: false, owners: [owner])
        #expect(
            try named(cause(.lock, onCPU: 0, blocked: 500, lock: lock))
                == "Blocked for 500 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2 \"writer\" in "
                + "writeWAL() (WAL.swift:7), which is running.")
        for (name, target, words) in [
            ("epoll_wait", "anon_inode:[eventpoll]", "epoll_wait, for an event on one of its descriptors"),
            ("close", "descriptor 9, which is no longer open", "close, which may wait until data is sent or written"),
        ] {
            let call = StallReport.SystemCall(number: 3, name: name, target: target)
            let sentence = try named(cause(.io, onCPU: 0, blocked: 500, call: call))
            #expect(sentence == "Blocked for 500 of 500 ms in \(words).")
        }
        let poll = StallReport.SystemCall(number: 7, name: "poll", target: "socket to 10.0.0.1:53")
        #expect(
            try named(cause(.io, onCPU: 100, blocked: 900, call: poll), inner: "getaddrinfo")
                == "Blocked for 900 of 1000 ms in getaddrinfo, which waits for the name server 10.0.0.1:53; "
                + "on CPU for 100 ms.")
    }

    @Test func aRedactedFunctionIsNotInTheSentence() throws {
        var redacted = try report(cause(.cpu, onCPU: 600, blocked: 400))
        #expect(redacted.cause?.summary.contains("refresh()") == true)
        #expect(redacted.redact { $0.frames[2].function = "hidden" } == nil)
        #expect(redacted.cause?.summary.contains("called by hidden; blocked") == true)
        #expect(redacted.redact { $0.cause?.summary = "Redacted." } == nil)
        #expect(redacted.cause?.summary == "Redacted.")
        var broken = try report(cause(.cpu, onCPU: 600, blocked: 400))
        #expect(broken.redact { $0.durationMilliseconds = -1 } != nil)
        #expect(broken.cause?.summary == "On CPU for 600 of 1000 ms, 60 % of it in the kernel; blocked for 400 ms.")
    }

    @Test func aSentenceOfTheAppsOwnIsKept() throws {
        var report = try StallReport.literal()
        report.cause = cause(.sleep, onCPU: 0, blocked: 500)
        report.cause?.summary = "Redacted."
        report.nameCause(since: report)
        #expect(report.cause?.summary == "Redacted.")
    }

    @Test func theHeadlineOfAnOngoingStallSaysSo() throws {
        var report = try StallReport.literal()
        report.state = .ongoing
        report.culprit = nil
        report.callout = nil
        #expect(report.headline == "main stalled and has not come back after 812 ms")
    }

    @Test func functionsAreNamedInnermostFirst() throws {
        let report = try StallReport.literal()
        #expect(
            report.functionNames(of: report.samples[0])
                == ["pthread_mutex_lock", "NoteStore.save(_:)", "libc.so.6+0x3e9f10"]
        )
        #expect(report.functionNames(of: report.samples[1]).isEmpty)
    }
}

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

@Suite struct ActivityTests {
    @Test func aSaturationIsDescribedWithItsShares() {
        var activity = StallReport.Activity(turnsPerSecond: 498.6, busyShare: 0.991)
        activity.cpuShare = 0.5
        #expect(activity.sentence == "Busy for 99 % of the time; 499 turns a second; 50 % of a CPU")
    }

    @Test func aSpinIsDescribedWithItsDescriptor() {
        var activity = StallReport.Activity(turnsPerSecond: 1_234_567)
        activity.cpuShare = 0.367
        activity.readyDescriptor = "descriptor 7, pipe:[4711]"
        #expect(
            activity.sentence == "1,234,567 turns a second; 37 % of a CPU; "
                + "descriptor 7, pipe:[4711], is always readable, and the app does not read it")
        var empty = StallReport.Activity(turnsPerSecond: 0)
        empty.isModeEmpty = true
        #expect(empty.sentence == "The mode has no sources, so each run of the loop returns at once")
    }

    @Test func aStarvingModeIsDescribedWithWhatWaits() {
        var activity = StallReport.Activity(turnsPerSecond: 0)
        activity.awaitedMode = "kCFRunLoopDefaultMode"
        activity.isTimerDue = true
        activity.hasMainQueueWork = true
        #expect(
            activity.sentence == "While the loop ran in another mode, "
                + "a timer of the mode kCFRunLoopDefaultMode was due and the main queue had work")
        activity.isTimerDue = false
        #expect(activity.sentence == "While the loop ran in another mode, the main queue had work")
    }

    @Test func everyKindHasItsVerb() {
        let kinds: [StallReport.Kind] = [.stall, .starvation, .saturation, .spinning]
        #expect(kinds.map(\.verbs.present) == ["stalls", "stalls", "is saturated", "spins"])
        #expect(kinds.map(\.verbs.past) == ["stalled for", "stalled for", "was saturated for", "spun for"])
        #expect(kinds.map(\.verbs.perfect).suffix(2) == ["has been saturated for", "has been spinning for"])
    }
}

@Suite struct SampleSharesTests {
    @Test func `without weights, the nearest valid sample counts`() throws {
        var report = try StallReport.literal()
        #expect(report.sampleShares == [1, 0], "the second sample is invalid")
        report.samples[1].isValid = true
        let shares = report.sampleShares
        #expect(abs(shares[0] - (250.4 + 375.5) / 2 / 812.4) < 1e-9)
        #expect(abs(shares[0] + shares[1] - 1) < 1e-9)
    }

    @Test func weightsAreSharesOfTheirSum() throws {
        var report = try StallReport.literal()
        report.samples[0].weightMilliseconds = 30
        report.samples[1].weightMilliseconds = 10
        #expect(report.sampleShares == [0.75, 0.25])
    }

    @Test func aStallWithoutADurationHasShares() throws {
        var report = try StallReport.literal()
        report.durationMilliseconds = 0
        #expect(report.sampleShares == [1, 0])
        report.samples = []
        #expect(report.sampleShares.isEmpty)
    }

    @Test func theHeadlineStatesTheCulpritsShare() throws {
        var report = try StallReport.literal()
        report.culprit?.share = 0.7143
        #expect(report.headline == "main stalled for 812 ms, 71 % of it in NoteStore.save(_:) (timer)")
        report.culprit?.share = 0.996
        #expect(report.headline == "main stalled for 812 ms in NoteStore.save(_:) (timer)")
    }
}
