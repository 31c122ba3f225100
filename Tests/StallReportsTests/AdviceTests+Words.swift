import TestSupport
import Testing

@testable import StallReports

// The words about work, calls, sleeps and operations.

extension AdviceTests {
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

    @Test func `damaged numbers have words, too`() {
        #expect((-1e300).percent == "-1000000000000000 %" && (0.376).percent == "38 %")
        #expect(Double.nan.whole == 0 && Double.infinity.whole == 1_000_000_000_000_000 && (2.5).whole == 3)
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

    @Test func `a close that waits for its peer has SO_LINGER`() throws {
        var report = try Stall(call: Self.call("close", "descriptor 4, which is no longer open")).report()
        report.cause?.waitChannel = "wait_woken"
        #expect(
            report.advice?.text.hasSuffix(
                "or without SO_LINGER: with it, close waits until the other end has confirmed the data.") == true)
    }

    @Test(arguments: [.cooperativePool, .taskExecutor, .globalQueue] as [StallReport.LoopKind])
    func `a pool's threads that were not seen may do something else`(loop: StallReport.LoopKind) throws {
        let text = try Stall(kind: .cpu, loop: loop, reportKind: .starvation).report().advice?.text
        #expect(text?.hasSuffix(": the pool's threads that were seen compute.") == true, "\(text ?? "none")")
        #expect(text?.contains("await Task.yield()") == (loop != .globalQueue))
    }

    @Test func `a library for images may write one`() throws {
        let text = try Stall(kind: .cpu, inner: ["libpng!png_write_image"]).report().advice?.text
        #expect(text?.contains("If it decodes an image,") == true)
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
        report.cause?.otherCall = Self.call("nanosleep", "30 ms")
        report.cause?.voluntarySwitches = 11
        #expect(report.advice?.text.contains(words) == true, "many waits share the time with what runs")
        report.cause?.voluntarySwitches = 10
        #expect(report.advice?.text.hasPrefix("Move the wait in load() (Store.swift:12) off the loop.") == true)
    }

    @Test func `canceling an operation ends the sleeps of its children`() throws {
        let text = try Self.overdue(.sleep, .sleep).report().advice?.text
        #expect(text?.hasSuffix("ends the sleeps of its own task and its child tasks only.") == true, "\(text ?? "")")
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

    @Test func `a sleep whose result the caller needs is taken out`() throws {
        var report = try Stall(kind: .sleep, call: Self.call("clock_nanosleep")).report()
        report.culprit?.returnsValue = true
        for (index, name) in ["Shelf.__allocating_init()", "start()"].enumerated() {
            var caller = report.frames[0]
            (caller.function, caller.line) = (name, 20 + index)
            report.frames.append(caller)
            report.stacks[0].insert(report.frames.count - 1, at: 1 + index)
        }
        let words = "load() (Store.swift:12), or move its caller start() (Store.swift:21) off the loop"
        #expect(report.advice?.text.hasPrefix("Take the sleep out of " + words) == true)
        report.culprit?.returnsValue = false
        #expect(report.advice?.text.contains("let a timer call what comes after it") == true)
    }

    @Test func `a continuation may still be resumed while the operation goes on`() throws {
        var report = try Self.overdue(.continuation, .task, .continuation).report()
        report.state = .ongoing
        #expect(report.advice?.text.contains("in fetch() (Feed.swift:9) on every path") == true)
    }

    @Test func `what a stream's reader waits for yields to it`() throws {
        var report = try Self.overdue(.continuation, .task, .continuation).report()
        report.waits?[1].stack = 0
        #expect(report.advice?.text.contains("Find what resumes the continuation") == true)
        #expect(report.advice?.text.contains("when it lasts again: stallwatch tasks \(report.process.name)") == true)
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
        #expect(report.advice?.text == "See what all threads do when it lasts again: stallwatch stacks notes.")
        // No word for a shell, or one that is a number: the command would not find the process.
        for name in ["my notes", "4701", "-n", "$(reboot)", ""] {
            report.process.name = name
            #expect(report.advice?.text.hasSuffix(": stallwatch stacks 4700.") == true, "\(name)")
        }
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
