import TestSupport
import Testing

@testable import StallReports

// The functions that the sentence of a cause names for a lock: those of its owner, and the one that waits.

extension StallReportSummaryTests {
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

    @Test(
        arguments: [
            ("_MutexHandle._lockSlow(_:)", "Mutex.withLock"), ("dispatch_sema4_timedwait", "dispatch_semaphore_wait"),
            ("DispatchSemaphore.wait(timeout:)", "DispatchSemaphore.wait"),
            ("pthread_mutex_lock", "pthread_mutex_lock"),
        ])
    func `a function that waits has the name by which an app calls it`(function: String, called: String) {
        #expect(function.asCalled == called)
        var lock = StallReport.Lock(kind: .futex, isDeadlock: false, owners: [])
        lock.function = function
        #expect(lock.calledFunction == called)
    }

    @Test func `the main queue and the kinds of loops are named in words`() {
        let queue = StallReport.LockKind.dispatchQueue
        #expect(queue.named("com.apple.main-thread") == "the main queue")
        #expect(queue.named("com.apple.x") == "the dispatch queue \"com.apple.x\"")
        #expect(StallReport.LoopKind.runLoop.inWords == "run loop")
        #expect(StallReport.LoopKind.probe.inWords == "probe")
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
                == "Blocked for 500 of 500 ms in dispatch_semaphore_wait, \(end)")
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
}
