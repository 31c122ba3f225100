import Foundation
import TestSupport
import Testing

@testable import StallReports

/// Each rule with a stall that it is right for, and with a near miss for which it has to be silent.
@Suite struct AdviceTests {
    @Test(arguments: cases.indices) func `a rule decides its stall and not the near miss`(index: Int) throws {
        let (rule, right, words, near, other) = Self.cases[index]
        let advice = try right.report().advice
        #expect(advice?.rule == rule)
        #expect(advice?.text.contains(words) == true, "\(advice?.text ?? "none")")
        #expect(advice?.text.utf8.count ?? 0 < 200)
        #expect(advice?.command == "stallwatch explain \(advice?.page.dropFirst(12).dropLast(3) ?? "")")
        #expect(try near.report().advice?.rule == other)
    }

    /// Stalls that look like those of a special rule, and have only a general one.
    private static let general: [(stall: Stall, rule: String)] = [
        // A worker that takes its own lock again: the main thread holds none.
        (
            Stall(
                kind: .deadlock,
                lock: lock(.pthreadMutex, [owner(11, waitsFor: .pthreadMutex), owner(11)], isDeadlock: true)), "circle"
        ),
        // Libraries that sleep between their tries.
        (
            Stall(
                kind: .sleep, call: call("clock_nanosleep"),
                inner: ["libc!clock_nanosleep", "libc!usleep", "libsqlite3!sqlite3_step"]), "polling"
        ),
        // Sockets of this machine.
        (Stall(call: call("sendto", "socket to /dev/log")), "stream"),
        (Stall(call: call("recvfrom", "socket to 127.0.0.1:5432")), "stream"),
        (Stall(call: call("connect", "127.0.0.53:53")), "call"),
        (Stall(call: call("read", "socket to [::1]:6379")), "stream"),
        (Stall(call: call("read", "socket to [::ffff:127.0.0.1]:80")), "stream"),
        (Stall(call: call("read", "socket:[7]")), "stream"),
        (Stall(call: call("recvmsg", "socket to @bus", [cat])), "stream"),
        // A FIFO whose writer is not known.
        (Stall(call: call("read", "/run/fifo", or: "the search ended")), "stream"),
    ]

    @Test(arguments: general.indices) func `what the app cannot do is not advised`(index: Int) throws {
        let (stall, rule) = Self.general[index]
        #expect(try stall.report().advice?.rule == rule)
    }

    @Test func `one who sleeps a little each time looks again and again`() throws {
        var report = try Stall(kind: .sleep, call: Self.call("clock_nanosleep", "1 ms")).report()
        report.cause?.blockedMilliseconds = 500
        report.cause?.voluntarySwitches = 400
        #expect(report.advice?.rule == "polling")
        #expect(report.advice?.text.contains("If load() (Store.swift:12) waits for something, be called") == true)
    }

    /// Some 400 kB of JSON: with a copy of the stack for each sample, 4 GB.
    @Test(.timeLimit(.minutes(10))) func `thousands of samples of a deep stack cost no more than one`() throws {
        var report = try Stall(kind: .cpu, inner: Array(repeating: "libpng!inflate_rows", count: 10_000)).report()
        report.samples = Array(repeating: report.samples[0], count: 2_000)
        for index in report.samples.indices { report.samples[index].threadState = .running }
        #expect(report.advice?.rule == "image")
        let sentence = report.cause?.sentence ?? ""
        report.cause?.summary = sentence
        let unnamed = report
        report.nameCause(since: unnamed)
        #expect(report.cause?.summary.contains("in inflate_rows, called by load()") == true)
    }

    @Test func `the sentence says what a signal handler has interrupted`() throws {
        func summary(of stall: Stall) throws -> String? {
            var report = try stall.report()
            let sentence = report.cause?.sentence ?? ""
            report.cause?.summary = sentence
            let unnamed = report
            report.nameCause(since: unnamed)
            return report.cause?.summary
        }
        let words = " It was in a signal handler, which interrupted work() (Work.swift:3)."
        #expect(try summary(of: Stall(kind: .cpu, interrupted: "work()"))?.hasSuffix(words) == true)
        #expect(try summary(of: Stall(kind: .cpu))?.contains("signal") == false)
    }

    @Test func `a signal does not interrupt a suspended function`() throws {
        var report = try Stall(kind: .cpu, interrupted: "work()").report()
        let index = try #require(report.frames.firstIndex { $0.function == "work()" })
        #expect(report.signalHandler?.interrupted == "work() (Work.swift:3)")
        report.frames[index].kind = .asyncCaller
        #expect(report.signalHandler?.place == "load() (Store.swift:12)")
        #expect(report.signalHandler?.interrupted == nil)
    }

    @Test func `an owner outside of a circle does not decide what to do`() throws {
        let owners = [
            Self.owner(12, waitsFor: .dispatchQueue), Self.owner(11, waitsFor: .pthreadMutex),
            Self.owner(13, waitsFor: .pthreadMutex), Self.owner(11, waitsFor: .pthreadMutex),
        ]
        let stall = Stall(kind: .deadlock, lock: Self.lock(.pthreadMutex, owners, isDeadlock: true))
        #expect(try stall.report().advice?.text.hasPrefix("Take the locks of the circle in one order") == true)
    }

    @Test func `damaged numbers have words, too`() {
        #expect((-1e300).percent == "-1000000000000000 %" && (0.376).percent == "38 %")
        #expect(Double.nan.whole == 0 && Double.infinity.whole == 1_000_000_000_000_000 && (2.5).whole == 3)
    }

    @Test func `a sleep that the app's function calls has advice`() throws {
        let direct = Stall(
            kind: .sleep, call: Self.call("clock_nanosleep"),
            inner: ["libc!clock_nanosleep", "libFoundationEssentials!Thread.sleep"])
        #expect(try direct.report().advice?.rule == "sleep")
    }

    /// That of `map` is half of the work: the function around it can be moved.
    @Test func `a closure that its function calls is moved with that`() throws {
        func text(_ inner: String) throws -> String? {
            var report = try Stall(kind: .cpu, inner: [inner]).report()
            report.culprit = .init(function: inner, file: "/src/Store.swift", line: 14, share: 1)
            return report.advice?.text
        }
        #expect(try text("closure #1 in load()")?.hasPrefix("Move load() (Store.swift:12) off the loop") == true)
        #expect(
            try text("closure #1 in sort()")?.hasPrefix("Move closure #1 in sort() (Store.swift:14) off the loop")
                == true)
    }

    @Test func `a lack of CPU is named beside a cause that is only possible`() throws {
        var report = try Stall(kind: .cpu, confidence: .possible, onCPU: 288).report()
        report.cause?.blockedMilliseconds = 0
        #expect(report.advice?.rule == "look")
        report.cause?.runQueueMilliseconds = report.durationMilliseconds - 288
        #expect(report.advice?.text.contains("with a CPU, too, the turn takes 288 ms.") == true)
        report.cause?.onCPUMilliseconds = 100
        #expect(report.advice?.rule == "look", "the lack of CPU alone makes it a stall")
    }

    @Test func `a turn without samples is perhaps one of many that had no CPU`() throws {
        var report = try StallReport.literal()
        (report.cause, report.missingSamplesReason) = (nil, "the turn had ended")
        report.monitor.watchdogLateMilliseconds = 12
        #expect(report.advice?.text.hasPrefix("See whether CPUs are short") == true)
        report.monitor.watchdogLateMilliseconds = 0.1
        #expect(report.advice?.text.hasPrefix("Set a lower threshold") == true, "the watchdog looked in time")
    }

    /// What calls it needs its value.
    @Test func `of a few sleeps the call is to be changed`() throws {
        var report = try Stall(kind: .sleep, call: Self.call("clock_nanosleep", "60 ms"), outer: "refresh").report()
        report.cause?.blockedMilliseconds = 361
        report.cause?.voluntarySwitches = 6
        #expect(report.cause?.sentence.hasPrefix("Slept about 6 times, for 361 of 363 ms") == true)
        #expect(report.advice?.text.hasPrefix("Take the sleep out of load() (Store.swift:12)") == true)
        report.cause?.voluntarySwitches = 1
        #expect(report.cause?.sentence.hasPrefix("Slept for 361") == true)
        report.cause?.voluntarySwitches = 6
        report.cause?.blockedMilliseconds = 179.6
        report.cause?.uncertaintyMilliseconds = 200
        #expect(
            report.cause?.sentence.hasPrefix("Slept about 3 times, ") == true, "no sleep is made up")
        report.cause?.voluntarySwitches = 1
        #expect(report.cause?.sentence.hasPrefix("Slept for ") == true)
        report = try Stall(kind: .sleep, call: Self.call("clock_nanosleep", "60 ms"), isInTask: true).report()
        report.cause?.blockedMilliseconds = 361
        report.cause?.voluntarySwitches = 6
        #expect(report.advice?.text.hasPrefix("Replace the sleep") == true)
    }

    @Test func `a Timer is advised only where a run loop fires it`() throws {
        func timers(_ loop: StallReport.LoopKind) throws -> String? {
            let stall = Stall(kind: .sleep, call: Self.call("clock_nanosleep", "500 ms"), loop: loop)
            return try stall.report().advice?.text
        }
        #expect(try timers(.runLoop)?.contains("(Timer, DispatchQueue.asyncAfter)") == true)
        for loop in [StallReport.LoopKind.mainQueue, .dispatchQueue, .threadPool, .probe] {
            #expect(try timers(loop)?.contains("(DispatchQueue.asyncAfter)") == true)
        }
    }

    /// A loop of the app's own, such as a game's, runs no queue.
    @Test(
        arguments: [
            (.mainQueue, "main", " (DispatchQueue.main.async).", "(queue: .main)"), (.probe, "game", ".", "(queue:)"),
            (.dispatchQueue, "db", " (async on its queue).", "(queue:)"), (.serialExecutor, "db", ".", "(queue:)"),
        ] as [(StallReport.LoopKind, String, String, String)])
    func `the main queue is advised only where it runs`(
        kind: StallReport.LoopKind, label: String, end: String, queue: String
    ) throws {
        func text(_ lock: StallReport.LockKind) throws -> String? {
            var report = try Stall(kind: .lock, lock: Self.lock(lock, []), loop: kind).report()
            (report.loop.label, report.loop.thread) = (label, nil)
            return report.advice?.text
        }
        #expect(
            try text(.semaphore)?.contains("let the code that signals call back\(end) What other threads do, ") == true)
        #expect(try text(.threadJoin)?.hasSuffix("let the thread call back at its end\(end)") == true)
        #expect(try text(.dispatchGroup)?.contains("group.notify\(queue)") == true)
    }

    @Test(
        arguments: [
            (.semaphore, "Do not wait with a time limit in load()"), (.dispatchGroup, "and by a timer for its"),
        ]
            as [(StallReport.LockKind, String)])
    func `a wait with a time limit may have been a sleep`(kind: StallReport.LockKind, text: String) throws {
        var lock = Self.lock(kind, [])
        lock.hasTimeLimit = true
        #expect(try Stall(kind: .lock, lock: lock).report().advice?.text.contains(text) == true)
    }

    @Test(
        arguments: [(true, "Find the code that should signal"), (false, "Do not wait in load()")]
            as [(Bool, String)])
    func `the advice depends on whether the time limit ended the wait`(endedByLimit: Bool, text: String) throws {
        var lock = Self.lock(.semaphore, [])
        (lock.hasTimeLimit, lock.endedByTimeLimit) = (true, endedByLimit)
        #expect(try Stall(kind: .lock, lock: lock).report().advice?.text.hasPrefix(text) == true)
    }

    @Test func `a wait for a queue of low priority holds no lock`() throws {
        let owner = Self.owner(inversion: .init(nice: 10, waiterNice: 0, queue: "export"))
        let text = try Stall(kind: .lock, lock: Self.lock(.dispatchQueue, [owner])).report().advice?.text
        let start = "Raise the QoS of the queue \"export\", or do not wait for its work in load() (Store.swift:12): "
        #expect(text?.hasPrefix(start) == true, "\(text ?? "none")")
    }

    @Test func `a close that waits for its peer has SO_LINGER`() throws {
        var report = try Stall(call: Self.call("close", "descriptor 4, which is no longer open")).report()
        report.cause?.waitChannel = "wait_woken"
        #expect(
            report.advice?.text.hasSuffix(
                "or without SO_LINGER: with it, close waits until the other end has confirmed the data.") == true)
    }

    @Test(arguments: [(.globalQueue, "pool"), (.threadPool, "starvation")] as [(StallReport.LoopKind, String)])
    func `the threads of a global queue have a page of their own`(loop: StallReport.LoopKind, topic: String) throws {
        let advice = try Stall(kind: .lock, loop: loop, reportKind: .starvation).report().advice
        #expect(advice?.rule == "poolWaits" && advice?.command == "stallwatch explain \(topic)")
    }

    @Test func `a reader of stdin prints nothing`() throws {
        var lock = Self.lock(.stdio, [Self.owner(call: Self.call("read", "/dev/pts/0"))])
        lock.label = "stdin"
        let advice = try Stall(kind: .lock, lock: lock).report().advice
        #expect(
            advice?.text
                == "Use stdin in one thread only, and flush single streams in load() (Store.swift:12), not all "
                + "(fflush(nil)): a reader of stdin keeps its lock until input comes (it is in save() (Disk.swift:7)).")
    }

    @Test func `an owner that mostly waited has not computed`() throws {
        var owner = Self.owner(isRunning: true)
        owner.time = .init(observedMilliseconds: 452, onCPUMilliseconds: 12, runQueueMilliseconds: 0)
        let stall = Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [owner]))
        #expect(try stall.report().advice?.text == "Let go of the lock in save() (Disk.swift:7) before its slow part.")
        owner.time?.onCPUMilliseconds = 400
        let computing = Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [owner]))
        #expect(try computing.report().advice?.rule == "ownerComputes")
    }

    @Test func `an owner that computed is met in a short call`() throws {
        var owner = Self.owner(call: Self.call("write", "/var/log/app"))
        owner.time = .init(observedMilliseconds: 452, onCPUMilliseconds: 400, runQueueMilliseconds: 0)
        let computing = Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [owner]))
        #expect(try computing.report().advice?.text.contains("which computed for 400 ms with the lock held") == true)
        let printing = Stall(kind: .lock, lock: Self.lock(.stdio, [owner]))
        #expect(try printing.report().advice?.text.contains("more slowly") == false)
        owner.time?.onCPUMilliseconds = 12
        let slow = Stall(kind: .lock, lock: Self.lock(.stdio, [owner]))
        #expect(try slow.report().advice?.text.contains("more slowly") == true)
        let writing = Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [owner]))
        #expect(try writing.report().advice?.rule == "ownerWaits")
    }

    @Test func `a file of the kernel is no source of input`() throws {
        let owner = Self.owner(call: Self.call("read", "/sys/class/hwmon/hwmon3/temp1_input"))
        let advice = try Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [owner])).report().advice
        #expect(advice?.text.contains("let go of it first") == true)
    }

    @Test func `a thread that is woken often may wait for many holds of a lock`() throws {
        var report = try Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [Self.owner(isRunning: true)])).report()
        report.cause?.blockedMilliseconds = 400
        #expect(report.advice?.text.contains("with the lock held") == true)
        report.cause?.voluntarySwitches = 400
        #expect(report.advice?.text.hasSuffix("and may have let go of the lock in between.") == true)
        report.cause?.lock?.owners[0].time = .init(
            observedMilliseconds: 400, onCPUMilliseconds: 20, runQueueMilliseconds: 380)
        #expect(report.advice?.text.contains("more CPU: it waited for a CPU for 380 of 400 ms.") == true)
    }

    @Test func `the work of a queue that mostly waits cannot be done in pieces`() throws {
        var owner = Self.owner(isRunning: true)
        owner.time = .init(observedMilliseconds: 452, onCPUMilliseconds: 12, runQueueMilliseconds: 0)
        let waiting = Stall(kind: .lock, lock: Self.lock(.dispatchQueue, [owner]))
        #expect(try waiting.report().advice?.text.contains("in pieces") == false)
        owner.isRunning = false
        owner.time?.onCPUMilliseconds = 400
        let computing = Stall(kind: .lock, lock: Self.lock(.dispatchQueue, [owner]))
        let words = "its work in save() (Disk.swift:7) can be done in pieces."
        #expect(try computing.report().advice?.text.hasSuffix(words) == true)
    }

    @Test(arguments: [.cooperativePool, .taskExecutor, .globalQueue] as [StallReport.LoopKind])
    func `a pool's threads that were not seen may do something else`(loop: StallReport.LoopKind) throws {
        let text = try Stall(kind: .cpu, loop: loop, reportKind: .starvation).report().advice?.text
        #expect(text?.hasSuffix(": the pool's threads that were seen compute.") == true, "\(text ?? "none")")
        #expect(text?.contains("await Task.yield()") == (loop != .globalQueue))
    }

    @Test func `this process may be among the writers that are left out`() throws {
        var call = Self.call("read", "pipe:[4]", [Self.cat])
        call.omittedPeers = 1
        #expect(try Stall(call: call).report().advice?.rule == "stream")
    }

    @Test func `a library for images may write one`() throws {
        let text = try Stall(kind: .cpu, inner: ["libpng!png_write_image"]).report().advice?.text
        #expect(text?.contains("If it decodes an image,") == true)
    }

    /// The main thread waits for a queue, whose work calls `DispatchQueue.main.sync`.
    @Test func `who calls sync on a queue may hold no lock`() throws {
        let owners = [Self.owner(11, waitsFor: .dispatchQueue), Self.owner(10, waitsFor: .dispatchQueue)]
        for kind in [StallReport.LockKind.dispatchQueue, .threadJoin] {
            let stall = Stall(kind: .deadlock, lock: Self.lock(kind, owners, isDeadlock: true))
            #expect(try stall.report().advice?.text.hasPrefix("Call async instead of sync in save()") == true)
        }
        let mixed = Stall(kind: .deadlock, lock: Self.lock(.pthreadMutex, owners, isDeadlock: true))
        #expect(try mixed.report().advice?.text.hasPrefix("Do not call sync in save() (Disk.swift:7) while") == true)
    }

    @Test(
        arguments: [(.threadJoin, "the end of a thread"), (.once, "the one-time initialization")]
            as [(StallReport.LockKind, String)])
    func `what has to end first is no lock of an order`(kind: StallReport.LockKind, end: String) throws {
        let owners = [Self.owner(11, waitsFor: .pthreadMutex), Self.owner(10, stack: 0, waitsFor: kind)]
        let text = try Stall(kind: .deadlock, lock: Self.lock(kind, owners, isDeadlock: true)).report().advice?.text
        let start = "Do not wait for \(end) in load() (Store.swift:12) while it holds what that needs"
        #expect(text?.hasPrefix(start) == true, "\(text ?? "none")")
    }

    @Test func `the initializer of a global may wait for a lock`() throws {
        let advice = try Stall(kind: .deadlock).report().advice
        #expect(advice?.text.hasSuffix("take no lock that is held where the global is read.") == true)
    }

    @Test func `the host of a virtual machine may hold it to a limit`() throws {
        var report = try Stall(kind: .cpuContention).report()
        report.cause?.stolenMilliseconds = 1
        #expect(report.advice?.text.contains("ran others on that CPU, or held it to a limit") == true)
    }

    @Test func `another process may read what a child writes`() throws {
        let stall = Stall(kind: .syscall, call: Self.call("wait4", "process 9", [Self.childWrites]))
        #expect(try stall.report().advice?.text.contains("here or by the process that its pipe leads to: gzip") == true)
    }

    @Test func `code that computes and sleeps in turn is named once`() throws {
        var report = try Stall(kind: .cpu).report()
        report.cause?.otherCall = Self.call("nanosleep", "2 ms")
        report.cause?.blockedMilliseconds = 200
        report.cause?.voluntarySwitches = 100
        report.samples[0].threadState = .blocked
        #expect(report.advice?.text.hasPrefix("Move load() (Store.swift:12) off the loop") == true)
        report.culprit?.function = "compute()"
        #expect(report.advice?.text.contains("and load() (Store.swift:12) less often: they") == true)
        let frames = ["compute()", "refresh()"].map { name in
            StallReport.Frame(
                image: 0, offset: "0x9", function: name, file: "/src/Work.swift", line: 3, isInApp: true, kind: .code)
        }
        let first = report.frames.count
        report.frames += frames
        report.stacks[0].insert(first + 1, at: 1)
        report.stacks.append([first, first + 1])
        var sample = report.samples[0]
        (sample.stack, sample.threadState) = (2, .running)
        report.samples.append(sample)
        let words = " and load() (Store.swift:12) less often in refresh() (Work.swift:3), which calls both: "
        #expect(report.advice?.text.contains(words) == true)
        report.culprit?.function = "load()"
        report.cause?.confidence = .possible
        report.fingerprint = "0123456789abcdef"
        #expect(report.advice?.text.contains(words) == true, "the waits have a little more time")
    }

    @Test func `canceling an operation ends the sleeps of its children`() throws {
        let text = try Self.overdue(.sleep, .sleep).report().advice?.text
        #expect(text?.hasSuffix("ends the sleeps of its own task and its child tasks only.") == true, "\(text ?? "")")
    }

    @Test func `the owner of one lock of several is not to blame`() throws {
        var report = try Stall(
            kind: .lock, lock: Self.lock(.pthreadMutex, [Self.owner(call: Self.call("nanosleep"))])
        ).report()
        #expect(report.heldUpBy != nil && report.advice?.rule == "ownerWaits")
        report.cause?.blockedMilliseconds = 500
        report.cause?.waitMilliseconds = 180
        #expect(report.heldUpBy == nil && report.advice?.rule == "held")
    }

    @Test(arguments: callCases.indices) func `advice for a loop of GLib names functions of GLib`(index: Int) throws {
        var report = try Self.callCases[index].right.report()
        (report.loop.kind, report.loop.label) = (.probe, "glib")
        let text = try #require(report.advice?.text)
        for word in ["Dispatch", "Task.", "task", "NIO", "FileHandle", "Process.", "queue", "readabilityHandler"] {
            #expect(!text.contains(word), "\(text)")
        }
    }

    @Test(arguments: [
        (Stall(kind: .cpu), "off the loop (a thread, g_thread_new), or split it into calls of g_idle_add."),
        (Stall(kind: .lock, lock: lock(.condition, [])), "call back (g_idle_add)"),
        (Stall(kind: .sleep, call: call("clock_nanosleep")), "let a timer call what comes after it (g_timeout_add)."),
    ]) func `GLib calls what comes later`(stall: Stall, words: String) throws {
        var report = try stall.report()
        #expect(report.advice?.text.contains("g_") == false)
        (report.loop.kind, report.loop.label) = (.probe, "glib")
        #expect(report.advice?.text.contains(words) == true, "\(report.advice?.text ?? "none")")
    }

    @Test(arguments: [("fsync", "/db/wal"), ("read", "/data/big"), ("futex", nil)] as [(String, String?)])
    func `an owner that works has not forgotten its lock`(name: String, target: String?) throws {
        let owner = Self.owner(call: Self.call(name, target))
        let advice = try Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [owner])).report().advice
        #expect(advice?.text.contains("let go of it first") == true)
    }

    /// The path of a Unix socket is any text, also one without a slash.
    @Test(arguments: [
        ("app.sock", "call"), ("socket.d/app", "call"), ("host:80", "call"), ("10.0.0.2:80", "socket"),
        ("[2001:db8::1]:80", "socket"), ("127.0.0.1:80", "call"),
    ]) func `only an address with a port is in the network`(target: String, rule: String) throws {
        #expect(try Stall(kind: .io, call: Self.call("connect", target)).report().advice?.rule == rule)
    }

    @Test func `every rule has a case`() {
        #expect(Set(Self.cases.map(\.rule)).sorted() == AdviceRule.all.map(\.id).sorted())
    }

    @Test(arguments: (AdviceRule.all + [.look]).map(\.page)) func `the page of a rule exists`(page: String) throws {
        let text = try String(contentsOf: Repository.root.appendingPathComponent(page), encoding: .utf8)
        for part in ["## What it means", "## How to confirm it", "## Usual fixes", "```swift"] {
            #expect(text.contains(part), "\(page) has no \(part)")
        }
    }

    /// Whatever the cause, a guess is no reason to change code: the command that would tell is named.
    @Test(arguments: cases.indices) func `an uncertain stall names a command`(index: Int) throws {
        var stall = Self.cases[index].right
        // The rules for loops, operations and a thread that computes know more than a cause.
        guard stall.activity == nil, stall.reportKind != .overdue, Self.cases[index].rule != "pinnedComputing" else {
            return
        }
        stall.confidence = .possible
        let advice = try #require(try stall.report().advice)
        #expect(advice.rule == "look" && advice.text.contains(": stallwatch "), "\(advice)")
        stall.confidence = .certain
        stall.share = 0.4
        #expect(try stall.report().advice?.rule == "look")
    }

    @Test func `a continuation may still be resumed while the operation goes on`() throws {
        var report = try Self.overdue(.continuation, .task, .continuation).report()
        report.state = .ongoing
        #expect(report.advice?.text.contains("in fetch() (Feed.swift:9) on every path") == true)
    }

    @Test func `of a deadlock the callers of a lock's wrapper are named`() throws {
        let owners = [Self.owner(11, waitsFor: .pthreadMutex), Self.owner(10, stack: 0)]
        var report = try Stall(kind: .deadlock, lock: Self.lock(.pthreadMutex, owners, isDeadlock: true)).report()
        report.loop.thread?.id = 10
        report.culprit = nil
        let wrapper = StallReport.Frame(
            image: 0, offset: "0x99", function: "Lock.lock()", file: "/src/Lock.swift", line: 3, isInApp: true,
            kind: .code)
        report.frames.append(wrapper)
        for stack in report.stacks.indices { report.stacks[stack].insert(report.frames.count - 1, at: 0) }
        let end = "they are taken in save() (Disk.swift:7), load() (Store.swift:12)."
        #expect(report.advice?.text.hasSuffix(end) == true, "\(report.advice?.text ?? "")")
    }

    @Test func `what a stream's reader waits for yields to it`() throws {
        var report = try Self.overdue(.continuation, .task, .continuation).report()
        report.waits?[1].stack = 0
        #expect(report.advice?.text.contains("Find what resumes the continuation") == true)
        report.frames.append(
            .init(offset: "0x9", function: "AsyncStream.Iterator.next()", isInApp: false, kind: .asyncCaller))
        report.stacks[0].insert(report.frames.count - 1, at: 0)
        #expect(report.advice?.text.contains("yields to or finishes the stream that fetch() (Feed.swift:9)") == true)
    }

    @Test func `a thread that was not captured hides no other one`() throws {
        var report = try Self.overdue(.cpu, .pool, .running, .running).report()
        report.waits?[2].function = nil
        #expect(
            report.advice?.text == "Make fetch() (Feed.swift:9) shorter, or give the thread back in it "
                + "(await Task.yield()), or raise the priority of the task that waits for a thread.")
        report.waits?[1].function = nil
        #expect(report.advice?.rule == "look")
    }

    @Test(arguments: [(StallReport.WaitKind.executor, "Task.yield()"), (.task, "withTaskGroup")])
    func `a task that computes makes way only for those that wait for its thread`(
        wait: StallReport.WaitKind, way: String
    ) throws {
        #expect(try Self.overdue(.cpu, wait, .running).report().advice?.text.contains(way) == true)
    }

    @Test func `the owner of the lock that holds up an operation lets go of it`() throws {
        var report = try Self.overdue(.lock, .task, .running).report()
        report.waits?[1].thread = 7
        let holder = StallReport.ThreadDescription(id: 8, name: "saver")
        var waiting = StallReport.OtherThread(thread: .init(id: 7))
        waiting.lock = Self.lock(.pthreadMutex, [.init(thread: holder, isRunning: false)])
        report.otherThreads = [waiting]
        let rest = " before the slow part: fetch() (Feed.swift:9), for which the operation waits, waits for it."
        #expect(report.advice?.text == "Let go of the mutex in thread 8 \"saver\"" + rest)
        report.otherThreads?.append(.init(thread: holder, stack: 1))
        #expect(report.advice?.text == "Let go of the mutex in save() (Disk.swift:7)" + rest)
        report.otherThreads?[0].lock?.kind = .dispatchSemaphore
        #expect(report.advice?.text.hasPrefix("Find what should end the wait in fetch()") == true)
        report.otherThreads?[0].lock = nil
        #expect(report.advice?.text.hasPrefix("Make the wait in fetch() (Feed.swift:9) shorter") == true)
        report.waits?[0].kind = .executor
        #expect(report.advice?.text.hasPrefix("Do not block a thread in fetch()") == true)
    }

    @Test func `a function that computes and waits is moved as a whole`() throws {
        var report = try Stall(kind: .cpu, onCPU: 460).report()
        report.cause?.blockedMilliseconds = 430
        report.thresholdMilliseconds = 430
        report.culprit?.share = 1
        report.samples[0].threadState = .blocked
        let whole =
            "Move load() (Store.swift:12) off the loop: the turn computes for 460 ms, and is blocked for 430 ms."
        #expect(report.advice?.text.hasPrefix(whole) == true)
        report.thresholdMilliseconds = 431
        #expect(report.advice?.text.contains("in pieces") == true)
        report.thresholdMilliseconds = 430
        var other = report.samples[0]
        (other.stack, other.threadState) = (1, .running)
        report.samples.append(other)
        #expect(report.advice?.text.contains("in pieces") == true, "another function computes")
    }

    /// `RunLoop.perform` leaves a loop asleep.
    @Test(arguments: [.lock, .cpu] as [StallReport.CauseKind])
    func `a thread's run loop is woken for what comes after`(kind: StallReport.CauseKind) throws {
        var report = try Stall(kind: kind, lock: Self.lock(.semaphore, []), loop: .runLoop).report()
        (report.loop.label, report.loop.thread) = ("worker", .init(id: 7))
        #expect(report.advice?.text.contains("(CFRunLoopPerformBlock, then CFRunLoopWakeUp)") == true)
    }

    @Test func `the longer of two parts is moved first`() throws {
        var report = try Stall(kind: .cpuContention, onCPU: 300).report()
        report.culprit?.function = "compute()"
        report.cause?.blockedMilliseconds = 400
        report.samples[0].threadState = .blocked
        #expect(report.advice?.text.hasPrefix("Move load() (Store.swift:12) off the loop first") == true)
        report.cause?.onCPUMilliseconds = 500
        #expect(report.advice?.text.hasPrefix("Move compute() (Store.swift:12) off the loop first") == true)
    }

    @Test func `parts of a possible cause are in the merged stacks`() throws {
        var report = try Stall(kind: .sleep, confidence: .possible).report()
        #expect(report.advice?.text == "See what all threads do when it lasts again: stallwatch stacks 4700.")
        report.fingerprint = "9f2c41d07a3be815"
        #expect(report.advice?.text == "See which parts cost: stallwatch tree --fingerprint 9f2c41d0 --bottom-up.")
        report.cause?.systemCall = Self.call("clock_nanosleep", "3.125 ms")
        report.cause?.voluntarySwitches = 100
        report.samples[0].threadState = .blocked
        report.cause?.blockedMilliseconds = 400
        #expect(report.advice?.text.hasPrefix("Find what runs load() (Store.swift:12) so often: ") == true)
        report.culprit?.function = "compute()"
        #expect(
            report.advice?.text.hasPrefix("Run compute() (Store.swift:12) and load() (Store.swift:12) less often: ")
                == true)
        report.state = .ongoing
        report.cause?.kind = .lock
        #expect(report.advice?.text == "See what all threads do while it lasts: stallwatch stacks 4700.")
    }

    @Test func `a report without a cause has no advice yet`() throws {
        var report = try Stall().report()
        report.cause = nil
        #expect(report.advice == nil)
    }

    @Test func `without a culprit only rules that need none decide`() throws {
        let independent = [
            "circle", "inversion", "ownerWaits", "ownerComputes", "contention", "quota", "paging", "saturation",
            "ready",
            "emptyMode", "resubmit", "mode", "notRun", "continuation", "taskCircle", "longSleep", "heldUp",
            "pinnedComputing",
        ]
        for (rule, stall, _, _, _) in Self.cases {
            var report = try stall.report()
            report.culprit = nil
            #expect((report.advice?.rule == rule) == independent.contains(rule), "\(rule)")
            #expect(report.advice != nil)
        }
    }

    @Test func `code that is only a small part of the time decides little`() throws {
        var report = try Stall(kind: .cpu, inner: ["libpng!inflate_rows"]).report()
        report.frames.append(contentsOf: report.frames.prefix(2))
        report.stacks.append([1, 2])
        report.samples.append(report.samples[0])
        report.samples[0].weightMilliseconds = 40
        report.samples[1].weightMilliseconds = 60
        report.samples[1].stack = 2
        #expect(report.advice?.rule == "compute")
        report.samples[0].weightMilliseconds = 70
        #expect(report.advice?.rule == "image")
    }

    @Test func `the task of an async main that runs a run loop is not the stalled one`() throws {
        var report = try Stall(kind: .sleep, call: Self.call("nanosleep"), isInTask: true).report()
        #expect(report.advice?.text.contains("Task.sleep(for:)") == true)
        let callout = "__CFRUNLOOP_IS_SERVICING_THE_MAIN_DISPATCH_QUEUE__"
        report.frames.append(.init(image: 1, offset: "0x5", symbol: callout, isInApp: false, kind: .code))
        report.stacks[0].insert(report.frames.count - 1, at: report.stacks[0].count - 1)
        #expect(report.advice?.text.contains("DispatchQueue.asyncAfter") == true)
    }

    @Test func `a task's advice is to await, and a pool's names the pool`() throws {
        let task = Stall(kind: .sleep, call: Self.call("nanosleep"), isInTask: true)
        #expect(try task.report().advice?.text.contains("Task.sleep(for:)") == true)
        let group = Stall(kind: .lock, lock: Self.lock(.dispatchGroup, []), isInTask: true)
        #expect(try group.report().advice?.text.contains("task group") == true)
        let pool = Stall(call: Self.call("read", "/data/big"), loop: .globalQueue)
        #expect(try pool.report().advice?.text.contains("off the pool") == true)
    }
}
