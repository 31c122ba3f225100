import TestSupport
import Testing

@testable import StallReports

// The words about waits for locks, and about deadlocks.

extension AdviceTests {
    @Test func `an owner outside of a circle does not decide what to do`() throws {
        let owners = [
            Self.owner(12, waitsFor: .dispatchQueue), Self.owner(11, waitsFor: .pthreadMutex),
            Self.owner(13, waitsFor: .pthreadMutex), Self.owner(11, waitsFor: .pthreadMutex),
        ]
        let stall = Stall(kind: .deadlock, lock: Self.lock(.pthreadMutex, owners, isDeadlock: true))
        #expect(try stall.report().advice?.text.hasPrefix("Take the locks of the circle in one order") == true)
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

    @Test(arguments: [("fsync", "/db/wal"), ("read", "/data/big"), ("futex", nil)] as [(String, String?)])
    func `an owner that works has not forgotten its lock`(name: String, target: String?) throws {
        let owner = Self.owner(call: Self.call(name, target))
        let advice = try Stall(kind: .lock, lock: Self.lock(.pthreadMutex, [owner])).report().advice
        #expect(advice?.text.contains("let go of it first") == true)
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
}
