import TestSupport
import Testing

@testable import StallReports

@Suite struct StallReportSummaryTests {
    @Test func theSummaryAddsPlaceAndCause() throws {
        var report = try StallReport.literal()
        report.culprit?.file = "/src/notes/NoteStore.swift"
        report.cause = StallReport.Cause(
            kind: .sleep, summary: "Slept for 812 of 812 ms in usleep.", confidence: .certain, onCPUMilliseconds: 0,
            runQueueMilliseconds: 0, blockedMilliseconds: 812, uncertaintyMilliseconds: 0)
        #expect(
            report.summary == """
                main stalled for 812 ms in NoteStore.save(_:) at NoteStore.swift:88 (timer)
                  why  Slept for 812 of 812 ms in usleep.
                  try  Do not wait with a time limit in NoteStore.save(_:) (NoteStore.swift:88): let a DispatchSource \
                call back when the event comes, and a timer when it does not.
                """)
        report.cause = nil
        report.culprit?.file = nil
        #expect(report.summary == report.headline)
    }

    @Test func `a title names the lock's owner, and blames no function that had no CPU`() throws {
        let owner = StallReport.LockOwner(thread: .init(id: 2, name: "writer"), stack: 1, isRunning: true)
        let lock = StallReport.Lock(kind: .pthreadMutex, isDeadlock: false, owners: [owner])
        var report = try report(cause(.lock, onCPU: 0, blocked: 500, lock: lock))
        report.callout = .mainQueue
        let title = "main stalled for 812 ms in NoteStore.save(_:) (main queue)"
        #expect(report.headline == title + ", held up by writeWAL() (WAL.swift:7)")
        report.cause?.confidence = .possible
        #expect(report.headline == title)
        report.cause?.confidence = .likely
        report.cause?.lock?.owners[0].waitsFor = .swiftMutex
        #expect(report.headline == title, "the last owner waits itself")
        report.cause?.lock?.owners[0].waitsFor = nil
        report.cause?.lock?.owners[0].time = .init(
            observedMilliseconds: 400, onCPUMilliseconds: 10, runQueueMilliseconds: 390)
        #expect(report.headline == title + ", held up by writeWAL() (WAL.swift:7)", "it got no CPU, and has the lock")
        report.cause?.kind = .throttled
        report.cause?.blockedMilliseconds = 249
        #expect(report.headline.hasSuffix(" 812 ms without a CPU, while it was in NoteStore.save(_:) (main queue)"))
        report.cause?.onCPUMilliseconds = 1
        #expect(report.headline == title, "a CPU alone would not have helped")
        (report.kind, report.callout, report.loop.label) = (.starvation, nil, "tasks")
        report.cause?.kind = .lock
        let held = "one of its threads was in NoteStore.save(_:), held up by writeWAL() (WAL.swift:7)"
        #expect(report.headline == "tasks kept work waiting for 812 ms: \(held)")
        report.state = .ongoing
        #expect(report.headline.hasPrefix("tasks has kept work waiting for 812 ms"))
    }

    /// Other priorities may have started tasks meanwhile, and other threads of an executor may have been elsewhere.
    @Test func `a starved pool is said to be no more than what is known`() throws {
        var report = try StallReport.literal()
        (report.kind, report.callout, report.cause) = (.starvation, nil, nil)
        (report.loop.label, report.loop.kind, report.loop.priorities) = ("tasks", .cooperativePool, ["medium"])
        var place = "one of its threads was in NoteStore.save(_:)"
        #expect(report.headline == "tasks kept work of medium priority waiting for 812 ms: \(place)")
        #expect(try StallReport(jsonData: report.jsonData()) == report)
        let threads = [1, 2, 3, 4, 5].map { (id: Int32) in StallReport.ThreadDescription(id: id) }
        report.stacks.append([0])
        let other = report.stacks.count - 1
        for (count, words) in [(1, "1 of its 5 threads was"), (2, "2 of its 5 threads were"), (5, "its threads were")] {
            report.samples[0].workers = [
                .init(stack: 0, threads: Array(threads.prefix(count))),
                .init(stack: other, threads: Array(threads.dropFirst(count))),
            ]
            place = "\(words) in NoteStore.save(_:)"
            #expect(report.headline == "tasks kept work of medium priority waiting for 812 ms: \(place)")
        }
        (report.loop.priorities, report.state) = (["high", "medium"], .ongoing)
        #expect(report.headline == "tasks has kept work of high or medium priority waiting for 812 ms: \(place)")
        (report.loop.label, report.loop.kind, report.loop.priorities) = ("io", .taskExecutor, nil)
        #expect(report.headline == "io has kept work waiting for 812 ms: one of its threads was in NoteStore.save(_:)")
    }

    @Test func `a loop as a whole has a word of its own where others have a cause`() throws {
        var report = try StallReport.literal()
        let words: [(StallKind, String)] = [
            (.saturation, "saturated"), (.spinning, "spinning"), (.modeStarvation, "mode"), (.notRun, "notRun"),
        ]
        for (kind, word) in words {
            report.kind = kind
            #expect(report.causeWord == word && StallReport.causeWords.contains(word))
        }
        report.kind = .stall
        #expect(report.causeWord == "unknown")
        report.cause = cause(.lock, onCPU: 0, blocked: 500)
        #expect(report.causeWord == "lock")
    }

    @Test func `a duration that may have begun much earlier is a least one`() throws {
        var report = try StallReport.literal()
        report.startUncertaintyMilliseconds = 103
        #expect(report.headline.hasPrefix("main stalled for at least 812 ms"))
        report.startUncertaintyMilliseconds = 80
        #expect(report.headline.hasPrefix("main stalled for 812 ms"))
    }

    /// The pool, whether the task is over, and the words.
    private static let pools: [(StallReport.Pool, StallState, String)] = [
        (
            .init(pinnedThreads: 1, width: 2, waitingTasks: 14, actor: "Store"), .ended,
            "1 of 2 threads of tasks for one priority was blocked for 812 ms in load() at Store.swift:12; "
                + "task 91 \"dns\" on the actor Store; 14 tasks waited"
        ),
        (
            .init(pinnedThreads: 2, width: 2, waitingTasks: 1, isComputing: true), .ongoing,
            "2 of 2 threads of tasks for one priority have been kept, one of them computing for 812 ms in load() at "
                + "Store.swift:12; task 91 \"dns\"; 1 task waited"
        ),
        (
            // The other one may have been blocked for a shorter time, or have computed.
            .init(pinnedThreads: 2, width: 4), .ended,
            "2 of 4 threads of tasks for one priority were kept, one of them blocked for 812 ms in load() at "
                + "Store.swift:12; task 91 \"dns\""
        ),
        (
            .init(pinnedThreads: 1, width: 1, waitingTasks: 0), .ended,
            "1 of 1 thread of tasks for one priority was blocked for 812 ms in load() at Store.swift:12; "
                + "task 91 \"dns\"; no task was seen waiting"
        ),
        (
            .init(pinnedThreads: 1), .ongoing,
            "1 thread of tasks has been blocked for 812 ms in load() at Store.swift:12; task 91 \"dns\""
        ),
    ]

    @Test(arguments: pools.indices) func `a pinned thread is one of how many`(index: Int) throws {
        let (pool, state, words) = Self.pools[index]
        var report = try StallReport.literal()
        (report.kind, report.state, report.pool, report.callout) = (.pinned, state, pool, nil)
        report.loop.label = "tasks"
        report.culprit = .init(function: "load()", image: nil, file: "/src/Store.swift", line: 12)
        report.context = .init(taskID: 91)
        report.context?.taskName = "dns"
        report.cause = nil
        #expect(report.summary == words)
        #expect(report.headline == words.replacing(" at Store.swift:12", with: ""))
        #expect(try StallReport(jsonData: report.jsonData()) == report)
    }

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
    private func frame(_ function: String) -> StallReport.Frame {
        .init(image: 1, offset: "0x1", function: function, symbol: function, isInApp: false, kind: .code)
    }

    private func named(_ cause: StallReport.Cause, inner: [String] = ["memmove@GLIBC_2.14"]) throws -> String? {
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

    @Test func `the thread of the report's own loop has the loop's label`() throws {
        let owners: [StallReport.LockOwner] = [
            .init(thread: .init(id: 2, name: "writer"), stack: 1, isRunning: false, waitsFor: .pthreadMutex),
            .init(thread: .init(id: 4_700, name: "notes"), isRunning: false, waitsFor: .pthreadMutex),
        ]
        let lock = StallReport.Lock(kind: .pthreadMutex, isDeadlock: true, owners: owners)
        #expect(
            try named(cause(.deadlock, onCPU: 0, blocked: 500, lock: lock))
                == "Waits in a cycle for the mutex held by thread 2 \"writer\" in writeWAL() (WAL.swift:7), "
                + "which waits for the mutex held by main.")
    }

    /// A report of a lock whose owner, thread 2, is in `writeWAL()`, called by these functions: `libc.so.6!dlopen`.
    private func report(
        _ kind: StallReport.CauseKind, _ lock: StallReport.LockKind, outer: [String],
        waitsFor: StallReport.LockKind? = nil
    ) throws -> StallReport {
        var owner = StallReport.LockOwner(thread: .init(id: 2, name: "writer"), stack: 1, isRunning: waitsFor == nil)
        owner.waitsFor = waitsFor
        let stalled = StallReport.LockOwner(thread: .init(id: 4_700), isRunning: false)
        let owners = waitsFor == nil ? [owner] : [owner, stalled]
        var report = try report(
            cause(
                kind, onCPU: 0, blocked: 500,
                lock: .init(kind: lock, function: "wait", isDeadlock: kind == .deadlock, owners: owners)))
        let before = report
        for (index, name) in outer.enumerated() {
            let parts = name.split(separator: "!").map(String.init)
            var frame = StallReport.Frame(
                offset: .init(UInt64(100 + index)), function: parts.last, symbol: parts.last, isInApp: parts.count == 1,
                kind: .code)
            if parts.count > 1 {
                frame.image = report.images.count
                report.images.append(.init(name: parts[0], path: "/\(parts[0])", baseAddress: "0x0"))
            }
            if name.hasSuffix("Addressor") { frame.compilerGenerated = .accessor }
            report.stacks[1].append(report.frames.count)
            report.frames.append(frame)
        }
        report.nameCause(since: before)
        return report
    }

    @Test(
        arguments: [
            (
                ["fill()", "libswiftCore.so!swift_once", "Cache.shared.unsafeMutableAddressor", "use()"],
                ", called by the initializer of Cache.shared"
            ),
            (
                ["fill()", "libdispatch.so!_dispatch_once_callout", "libdispatch.so!dispatch_once_f"],
                ", called by fill()"
            ),
            // The function is the initializer itself.
            (["libc.so.6!pthread_once", "use()"], ""),
            // Which of the two is waited for is not known.
            (["libc.so.6!pthread_once", "fill()", "libswiftCore.so!swift_once", "use()"], ""),
        ] as [([String], String)])
    func `an initializer is named whose function waits`(outer: [String], words: String) throws {
        let report = try report(.lock, .once, outer: outer)
        #expect(report.heldUpBy == "writeWAL() (WAL.swift:7)\(words)")
        #expect(report.cause?.summary.contains("in writeWAL() (WAL.swift:7)\(words), which is running") == true)
        if words.contains("Cache") {
            #expect(report.advice?.text.hasPrefix("Run the initializer of Cache.shared early") == true)
        }
    }

    @Test(
        arguments: [
            (["libc.so.6!__dl_iterate_phdr", "list()"], ", called by dl_iterate_phdr, called by list()"),
            (
                ["libplugin.so!init", "ld-linux-x86-64.so.2!call_init", "libc.so.6!dlopen@@GLIBC_2.34", "load()"],
                ", called by dlopen, which runs an initializer of libplugin.so"
            ),
            (["load()"], ""),
        ] as [([String], String)])
    func `the call that keeps the linker's lock is named`(outer: [String], words: String) throws {
        let summary = try report(.lock, .dynamicLinker, outer: outer).cause?.summary
        #expect(summary?.contains("in writeWAL() (WAL.swift:7)\(words), which is running") == true, "\(summary ?? "")")
    }

    @Test func `the caller of a lock's wrapper is named in a deadlock`() throws {
        var report = try report(.deadlock, .pthreadMutex, outer: ["Store.save()"], waitsFor: .pthreadMutex)
        #expect(report.cause?.summary.contains("in writeWAL() (WAL.swift:7), which waits") == true)
        let before = report
        let inner = report.stacks[1][0]
        report.frames[inner].function = "Lock.acquire()"
        report.nameCause(since: before)
        #expect(
            report.cause?.summary
                == "Waits in a cycle for the mutex held by thread 2 \"writer\" in Lock.acquire() (WAL.swift:7), called by "
                + "Store.save(), which waits for the mutex held by main.")
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

    @Test func `a wait for a signal is named by the library's function`() throws {
        let lock = StallReport.Lock(
            kind: .dispatchSemaphore, function: "dispatch_sema4_timedwait", isDeadlock: false, owners: [])
        let end = "until a thread signals the semaphore: it does not record which thread that will be."
        let wait = cause(.lock, onCPU: 0, blocked: 500, lock: lock)
        #expect(
            try named(wait, inner: ["_dispatch_sema4_timedwait", "$s8Dispatch0A9SemaphoreC4wait7timeouty"])
                == "Blocked for 500 of 500 ms in $s8Dispatch0A9SemaphoreC4wait7timeouty, \(end)")
        #expect(
            try named(wait, inner: ["__new_sem_wait_slow64.constprop.0"])
                == "Blocked for 500 of 500 ms in dispatch_sema4_timedwait, \(end)")
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
            (.swiftMutex, nil, ["syscall", "_MutexHandle._lock()"], "_MutexHandle._lock(), for the mutex."),
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

    /// A thread of the task pool keeps the number of a lock that one of its tasks has locked and still has.
    @Test(arguments: [
        (["sem_timedwait", "_dispatch_sema4_timedwait", "_dispatch_semaphore_wait_slow"], true),
        (["_dispatch_sema4_timedwait", "dispatch_semaphore_wait"], true),
        (["_dispatch_sema4_timedwait", "dispatch_semaphore_wait", "save()"], false),
        (["_dispatch_sema4_wait", "_dispatch_semaphore_wait_slow"], false),
    ])
    func `an idle thread does not wait with a lock`(functions: [String], isIdle: Bool) throws {
        let owner = StallReport.LockOwner(
            thread: .init(id: 2), stack: 0, isRunning: false, waitsFor: .dispatchSemaphore)
        let lock = StallReport.Lock(
            kind: .pthreadMutex, function: "pthread_mutex_lock", isDeadlock: false, owners: [owner])
        var report = try report(cause(.lock, onCPU: 0, blocked: 500, lock: lock))
        let before = report
        report.frames = (functions + ["_dispatch_worker_thread", "start_thread"]).map { name in
            .init(image: 1, offset: "0x1", function: name, symbol: name, isInApp: false, kind: .code)
        }
        report.stacks = [Array(report.frames.indices)]
        report.nameCause(since: before)
        let does =
            isIdle
            ? "has no work: a task that is suspended, or code that has returned, has left it locked"
            : "waits for a semaphore"
        #expect(
            report.cause?.summary
                == "Blocked for 500 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2, which \(does).")
    }

    @Test func theHeadlineOfAnOngoingStallSaysSo() throws {
        var report = try StallReport.literal()
        report.state = .ongoing
        report.culprit = nil
        report.callout = nil
        #expect(report.headline == "main stalled and has not come back after 812 ms")
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
