import TestSupport
import Testing

@testable import StallReports

// The functions that the sentence of a cause names once they are known.

extension StallReportSummaryTests {
    /// A report whose stack shows memmove, called by `NoteStore.save(_:)`, called by `refresh()`, with `cause`'s sentence.
    func report(_ cause: StallReport.Cause, inner: [String] = ["memmove@GLIBC_2.14"]) throws -> StallReport {
        var report = try StallReport.literal()
        report.cause = cause
        report.cause?.summary = cause.sentence
        report.samples[0].threadState = cause.kind == .cpu ? .running : .blocked
        let before = report
        report.stacks = [Array(0..<inner.count + 3), [inner.count + 3]]
        let outer: [StallReport.Frame] = [
            .init(image: 0, offset: "0x2", function: "NoteStore.save(_:)", isInApp: true, kind: .code),
            .init(image: 0, offset: "0x3", function: "refresh()", isInApp: true, kind: .code),
            .init(image: 0, offset: "0x4", function: "main", isInApp: true, kind: .code),
            .init(
                image: 0, offset: "0x5", function: "writeWAL()", file: "/src/WAL.swift", line: 7, isInApp: true,
                kind: .code),
        ]
        report.frames = inner.map(frame) + outer
        report.nameCause(since: before)
        return report
    }

    /// A frame of a library.
    func frame(_ function: String) -> StallReport.Frame {
        .init(image: 1, offset: "0x1", function: function, symbol: function, isInApp: false, kind: .code)
    }

    func named(_ cause: StallReport.Cause, inner: [String] = ["memmove@GLIBC_2.14"]) throws -> String? {
        try report(cause, inner: inner).cause?.summary
    }

    func cause(
        _ kind: StallReport.CauseKind, onCPU: Double, blocked: Double, call: StallReport.SystemCall? = nil,
        lock: StallReport.Lock? = nil
    ) -> StallReport.Cause {
        .init(
            kind: kind, confidence: .certain, onCPUMilliseconds: onCPU, runQueueMilliseconds: 0,
            blockedMilliseconds: blocked, uncertaintyMilliseconds: 0, kernelShare: 0.6, systemCall: call, lock: lock)
    }

    /// Those of a library whose file has been replaced.
    @Test func `who calls a function of the app without a name did not spend the time`() throws {
        var computing = try report(cause(.cpu, onCPU: 1_000, blocked: 0))
        computing.culprit = nil
        let before = computing
        var unnamed = frame("lost")
        (unnamed.function, unnamed.symbol, unnamed.isInApp) = (nil, nil, true)
        computing.frames.append(unnamed)
        for number in computing.stacks.indices { computing.stacks[number].insert(computing.frames.count - 1, at: 0) }
        computing.nameCause(since: before)
        #expect(computing.cause?.summary == "On CPU for 1000 of 1000 ms, 60 % of it in the kernel.")
    }

    /// GTK's `App::run()` calls the loop, and no more.
    @Test func `functions outside of the turn are not named`() throws {
        func put(_ loop: String, into report: inout StallReport) {
            report.frames.append(frame(loop))
            report.stacks[0].insert(report.frames.count - 1, at: 2)
        }
        var computing = try report(cause(.cpu, onCPU: 1_000, blocked: 0))
        let before = computing
        put("g_main_loop_run", into: &computing)
        computing.nameCause(since: before)
        #expect(before.cause?.summary.contains("called by refresh()") == true)
        #expect(computing.cause?.summary.contains("called by NoteStore.save(_:)") == true)
        #expect(computing.cause?.summary.contains("refresh()") == false)

        var waiting = try report(cause(.io, onCPU: 0, blocked: 500))
        put("g_main_loop_run", into: &waiting)
        #expect(waiting.longestWait?.function == "NoteStore.save(_:)")
        waiting.stacks[0].remove(at: 1)
        #expect(waiting.longestWait == nil)
        // Another one waits for the turn, and does not call the loop.
        waiting.frames[2].kind = .asyncCaller
        #expect(waiting.longestWait?.function == "refresh()")
    }

    /// Three callers have a third of the time each; then most of it is in a library, without a function of the app.
    @Test func `what half of the samples do not show is not named`() throws {
        var report = try report(cause(.cpu, onCPU: 900, blocked: 0))
        let first = report
        let end = " in memmove, called by NoteStore.save(_:)"
        #expect(first.cause?.summary.hasSuffix("\(end), called by refresh().") == true)
        for caller in ["load()", "open()"] {
            report.frames.append(.init(image: 0, offset: "0x8", function: caller, isInApp: true, kind: .code))
            report.stacks.append([0, 1, report.frames.count - 1, 3])
        }
        report.stacks.append([0])
        let sample = report.samples[0]
        func samples(_ parts: [(Int, Double)]) -> [StallReport.Sample] {
            parts.map { stack, weight in
                var part = sample
                (part.stack, part.weightMilliseconds) = (stack, weight)
                return part
            }
        }
        report.samples = samples([(0, 300), (2, 300), (3, 300)])
        report.nameCause(since: first)
        #expect(report.cause?.summary.hasSuffix("\(end).") == true)
        let second = report
        report.samples = samples([(0, 240), (2, 180), (3, 180), (4, 300)])
        report.nameCause(since: second)
        #expect(report.cause?.summary.hasSuffix(", mostly\(end).") == true)
        let third = report
        report.samples = samples([(0, 150), (2, 100), (3, 100), (4, 550)])
        report.nameCause(since: third)
        #expect(report.cause?.summary == "On CPU for 900 of 900 ms, 60 % of it in the kernel.")
    }

    @Test(arguments: [(300, "mostly in memmove"), (60, "in memmove")] as [(Double, String)])
    func `a function that was called for a part of the time has that said`(other: Double, words: String) throws {
        var report = try report(cause(.cpu, onCPU: 900, blocked: 0))
        let before = report
        report.frames.append(frame("memset"))
        report.stacks.append([report.frames.count - 1, 1, 2, 3])
        var samples = [report.samples[0], report.samples[0]]
        (samples[0].weightMilliseconds, samples[1].weightMilliseconds) = (900 - other, other)
        samples[1].stack = 2
        report.samples = samples
        report.nameCause(since: before)
        #expect(
            report.cause?.summary.hasSuffix(", \(words), called by NoteStore.save(_:), called by refresh().") == true)
    }

    @Test(
        arguments: [
            ([450, 270, 180], " (50 % at line 114, 30 % at line 113, 20 % at line 112)"), ([600, 180, 120], ""),
            ([450, 410, 40], " (50 % at line 114, 46 % at line 113)"),
        ] as [([Double], String)])
    func `lines that share the time of a function are named`(parts: [Double], words: String) throws {
        var report = try report(cause(.cpu, onCPU: 900, blocked: 0), inner: [])
        let (before, sample) = (report, report.samples[0])
        report.samples = parts.enumerated().map { index, weight in
            var frame = report.frames[0]
            frame.line = 114 - index
            report.frames.append(frame)
            report.stacks.append([report.frames.count - 1, 1, 2])
            var part = sample
            (part.stack, part.weightMilliseconds) = (report.stacks.count - 1, weight)
            return part
        }
        report.nameCause(since: before)
        #expect(report.cause?.summary.hasSuffix(", in NoteStore.save(_:)\(words), called by refresh().") == true)
    }

    @Test func `a line at which values are freed is said to be one`() throws {
        var report = try report(cause(.cpu, onCPU: 900, blocked: 0), inner: [])
        let (before, sample) = (report, report.samples[0])
        var release = report.frames[0]
        (release.function, release.symbol, release.isInApp) = ("swift_release", "swift_release", false)
        report.frames.append(release)
        report.samples = [380.0, 330, 190].enumerated().map { index, weight in
            var frame = report.frames[0]
            frame.line = 114 - index
            report.frames.append(frame)
            let inner = index == 0 ? [report.frames.firstIndex { $0.symbol == "swift_release" } ?? 0] : []
            report.stacks.append(inner + [report.frames.count - 1, 1, 2])
            var part = sample
            (part.stack, part.weightMilliseconds) = (report.stacks.count - 1, weight)
            return part
        }
        report.nameCause(since: before)
        let words = " (42 % freeing values at line 114, 37 % at line 113, 21 % at line 112)"
        #expect(report.cause?.summary.hasSuffix(", in NoteStore.save(_:)\(words), called by refresh().") == true)
    }

    @Test func `a wait until a process ends names the child`() throws {
        let inner = ["$s10Foundation7ProcessC13waitUntilExityyF"]
        var call = StallReport.SystemCall(number: 271, name: "ppoll")
        let words = "Blocked for 500 of 500 ms in Process.waitUntilExit(), until that process ends"
        #expect(try named(cause(.io, onCPU: 0, blocked: 500, call: call), inner: inner) == words + ".")
        call.peers = [
            .init(
                role: .child, pid: 9, name: "sleep", state: "S", systemCall: "clock_nanosleep", runningMilliseconds: 700
            )
        ]
        #expect(
            try named(cause(.io, onCPU: 0, blocked: 500, call: call), inner: inner)
                == words + "; the child is sleep (pid 9, running for 700 ms), "
                + "which was in clock_nanosleep when it was looked at.")
        let reason = "it may be any of 2 children, such as sleep (pid 9)"
        (call.peers, call.missingPeersReason) = (nil, reason)
        #expect(
            try named(cause(.io, onCPU: 0, blocked: 500, call: call), inner: inner)
                == words + "; for which process it waits is not known: \(reason).")
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
            (
                "epoll_wait", "an epoll set without descriptors",
                "epoll_wait until a time limit: its set is empty"
            ),
            ("close", "descriptor 9, which is no longer open", "close, which may wait until data is sent or written"),
        ] {
            let call = StallReport.SystemCall(number: 3, name: name, target: target)
            let sentence = try named(cause(.io, onCPU: 0, blocked: 500, call: call))
            #expect(sentence == "Blocked for 500 of 500 ms in \(words).")
        }
        let poll = StallReport.SystemCall(number: 7, name: "poll", target: "socket to 10.0.0.1:53")
        #expect(
            try named(cause(.io, onCPU: 100, blocked: 900, call: poll), inner: ["getaddrinfo"])
                == "Blocked for 900 of 1000 ms in getaddrinfo, which waits for the name server 10.0.0.1:53; "
                + "on CPU for 100 ms.")
        let avahi = StallReport.SystemCall(number: 0, name: "read", target: "socket to /run/avahi-daemon/socket")
        #expect(
            try named(cause(.io, onCPU: 0, blocked: 900, call: avahi), inner: ["getaddrinfo"])
                == "Blocked for 900 of 900 ms in getaddrinfo, which waits for /run/avahi-daemon/socket.")
    }

    @Test func `where it waited is named beside another cause`() throws {
        let ready = "Ready to run but without a CPU for 0 of "
        let others = "other threads used the CPUs (whose is not known)"
        let most = try named(cause(.cpuContention, onCPU: 0, blocked: 500))
        #expect(most == "\(ready)500 ms: \(others); blocked for 500 ms, in NoteStore.save(_:).")
        let little = try named(cause(.cpuContention, onCPU: 0, blocked: 9_000))
        #expect(
            little == "\(ready)9000 ms: \(others); blocked for 9000 ms.", "the sample stands for less than half of it")
        #expect(
            try named(cause(.throttled, onCPU: 500, blocked: 10))
                == "Ready to run but throttled for 0 of 510 ms: its cgroup had used up its CPU quota.")
    }

    /// The app signals no condition of Foundation's.
    @Test(
        arguments: [
            ("OperationQueue.waitUntilAllOperationsAreFinished()", "its operations have"),
            ("Operation.waitUntilFinished()", "it has"),
        ])
    func `operations end their wait`(name: String, words: String) throws {
        let lock = StallReport.Lock(
            kind: .condition, function: "pthread_cond_wait", isDeadlock: false, owners: [],
            reason: "this kind has no owner")
        #expect(
            try named(cause(.lock, onCPU: 0, blocked: 500, lock: lock), inner: ["pthread_cond_wait", name])
                == "Blocked for 500 of 500 ms in \(name), until \(words) ended.")
    }

    @Test(arguments: [["dispatch_block_wait"], ["dispatch_block_wait", "DispatchWorkItem.wait()"]])
    func `a work item's group is not the app's`(outer: [String]) throws {
        var lock = StallReport.Lock(
            kind: .dispatchGroup, function: "dispatch_group_wait", isDeadlock: false, owners: [])
        lock.entries = 1
        let wait = cause(.lock, onCPU: 0, blocked: 500, lock: lock)
        let name = outer.count > 1 ? "DispatchWorkItem.wait" : "dispatch_block_wait"
        #expect(
            try named(wait, inner: ["dispatch_group_wait"] + outer)
                == "Blocked for 500 of 500 ms in \(name), until the work item has ended.")
        #expect(
            try named(wait, inner: ["dispatch_group_wait"])
                == "Blocked for 500 of 500 ms in dispatch_group_wait, until the last thread leaves the dispatch group: "
                + "1 call of enter() or async(group:) was still open.")
    }

    @Test func `the end of iterations on other threads is no lock`() throws {
        var lock = StallReport.Lock(kind: .futex, isDeadlock: false, owners: [])
        lock.reason = "the kind of lock is not known"
        let wait = cause(.lock, onCPU: 0, blocked: 500, lock: lock)
        let inner = ["syscall", "_dispatch_thread_event_wait_slow"]
        #expect(
            try named(wait, inner: inner + ["dispatch_apply_f", "concurrentPerform(iterations:execute:)"])
                == "Blocked for 500 of 500 ms in concurrentPerform(iterations:execute:), until other threads have done "
                + "its last iterations.")
        #expect(
            try named(wait, inner: inner)
                == "Blocked for 500 of 500 ms in _dispatch_thread_event_wait_slow, for a futex; its owner is not "
                + "known: the kind of lock is not known.")
    }

    /// Four waits for one lock are the cause, each of them shorter than one sleep.
    @Test(
        arguments: [
            (
                .dispatchSemaphore, "dispatch_sema4_wait", ["_dispatch_sema4_wait", "DispatchSemaphore.wait()"],
                "DispatchSemaphore.wait, until a thread signals the semaphore: it does not record which thread that "
                    + "will be."
            ),
            (.swiftMutex, nil, ["syscall", "_MutexHandle._lock()"], "Mutex.withLock, for the mutex."),
        ] as [(StallReport.LockKind, String?, [String], String)])
    func `the function of a longer wait of another kind is not that of the lock`(
        kind: StallReport.LockKind, function: String?, inner: [String], words: String
    ) throws {
        var lock = StallReport.Lock(kind: kind, isDeadlock: false, owners: [])
        lock.function = function
        var report = try report(cause(.lock, onCPU: 0, blocked: 1_000, lock: lock), inner: ["usleep"])
        let before = report
        let first = report.frames.count
        report.frames += inner.map(frame)
        report.stacks += Array(repeating: [first, first + 1, 1, 2, 3], count: 4)
        let sample = report.samples[0]
        report.samples = [(0, 220.0), (2, 195), (3, 195), (4, 195), (5, 195)].map { stack, weight in
            var part = sample
            (part.stack, part.weightMilliseconds) = (stack, weight)
            return part
        }
        report.nameCause(since: before)
        #expect(report.cause?.summary == "Blocked for 1000 of 1000 ms in \(words)")
    }
}
