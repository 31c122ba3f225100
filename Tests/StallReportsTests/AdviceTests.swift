import Foundation
import TestSupport
import Testing

@testable import StallReports

/// Each rule with a stall that it is right for, and with a near miss for which it has to be silent.
@Suite struct AdviceTests {
    /// A stall of `load()`; a function of the app has no image's name before `!`.
    private struct Stall: CustomTestStringConvertible {
        var kind = StallReport.CauseKind.io
        var call: StallReport.SystemCall?
        var lock: StallReport.Lock?
        /// What `load()` called, innermost first.
        var inner: [String] = []
        var isInTask = false
        var confidence = StallReport.Confidence.certain
        var share: Double?
        var kernelShare: Double?
        var majorFaults: UInt64 = 0
        var pagedFile: String?
        var loop = StallReport.LoopKind.runLoop
        var reportKind = StallKind.stall
        var activity: StallReport.Activity?
        /// What an overdue operation waited for, in `fetch()`.
        var waits: [StallReport.WaitKind] = []
        var pool: StallReport.Pool?
        /// What runs around `load()`, and around the function of the lock's owner.
        var outer: String?
        var ownersOuter: String?

        var testDescription: String { "\(kind.rawValue) \(call?.description ?? "") \(inner)" }

        func report() throws -> StallReport {
            var report = try StallReport.literal()
            report.kind = reportKind
            report.activity = activity
            report.waits =
                waits.isEmpty
                ? nil
                : waits.map { kind in
                    var wait = StallReport.Wait(kind: kind, task: 7)
                    (wait.function, wait.file, wait.line) = ("fetch()", "/src/Feed.swift", 9)
                    return wait
                }
            report.loop = .init(label: "main", kind: loop, turn: 1, nesting: 0, thread: .init(id: 10))
            report.culprit = .init(function: "load()", file: "/src/Store.swift", line: 12, share: share)
            let names = ["app", "libc.so.6", "libpng16.so.16", "libFoundationEssentials.so", "libsqlite3.so.0"]
            report.images = names.map {
                .init(name: $0, path: "/\($0)", baseAddress: "0x0")
            }
            report.frames = inner.map { name in
                let parts = name.split(separator: "!").map(String.init)
                let image = parts.count > 1 ? report.images.firstIndex { $0.name.hasPrefix(parts[0]) } : 0
                let isOfLoop = name.contains("CFRunLoop") || name.contains("__CFRUNLOOP")
                let symbol = parts.first == "regex" ? "$s17_StringProcessing5RegexV" : isOfLoop ? parts.last : nil
                var frame = StallReport.Frame(
                    image: image ?? 1, offset: "0x1", function: parts.last, symbol: symbol, isInApp: parts.count == 1,
                    kind: .code)
                frame.isDependency = parts.first == "package" ? true : nil
                return frame
            }
            func frame(_ image: Int, _ function: String, _ file: String? = nil, _ line: Int? = nil) -> StallReport.Frame
            {
                .init(
                    image: image, offset: .init(UInt64(report.frames.count + 2)), function: function, file: file,
                    line: line, isInApp: image == 0, kind: .code)
            }
            report.frames.append(frame(0, "load()", "/src/Store.swift", 12))
            report.frames.append(frame(1, isInTask ? "swift_job_run" : "main"))
            if let pool { (report.kind, report.pool) = (.pinned, pool) }
            func runtime(_ symbol: String) -> StallReport.Frame {
                var runtime = frame(1, symbol)
                runtime.symbol = symbol
                return runtime
            }
            if let outer { report.frames.append(runtime(outer)) }
            let own = Array(report.frames.indices)
            // The stack of the lock's owner.
            report.frames.append(frame(0, "save()", "/src/Disk.swift", 7))
            if let ownersOuter { report.frames.append(runtime(ownersOuter)) }
            report.stacks = [own, Array(report.frames.indices.dropFirst(own.count))]
            report.samples = [
                .init(
                    atMilliseconds: 250, stack: 0, isValid: true, isComplete: true, heldMicroseconds: 0,
                    captureMicroseconds: 0)
            ]
            report.cause = .init(
                kind: kind, summary: "", confidence: confidence, onCPUMilliseconds: 1, runQueueMilliseconds: 1,
                blockedMilliseconds: 1, uncertaintyMilliseconds: 0, kernelShare: kernelShare, minorFaults: 0,
                majorFaults: majorFaults, voluntarySwitches: 0, involuntarySwitches: 0, pagedFile: pagedFile,
                systemCall: call, lock: lock)
            if activity != nil { report.cause = nil }
            return report
        }
    }

    private static func call(
        _ name: String, _ target: String? = nil, _ peers: [StallReport.Peer]? = nil, or missing: String? = nil
    ) -> StallReport.SystemCall {
        .init(number: 0, name: name, target: target, peers: peers, missingPeersReason: missing)
    }

    private static func lock(_ kind: StallReport.LockKind, _ owners: [StallReport.LockOwner], isDeadlock: Bool = false)
        -> StallReport.Lock
    {
        var lock = StallReport.Lock(kind: kind, isDeadlock: isDeadlock, owners: owners)
        if kind == .swiftTaskStatus { lock.label = "91 \"dns\"" }
        return lock
    }

    private static func owner(
        _ id: Int32 = 11, stack: Int? = 1, isRunning: Bool = false, call: StallReport.SystemCall? = nil,
        waitsFor: StallReport.LockKind? = nil, inversion: StallReport.PriorityInversion? = nil
    ) -> StallReport.LockOwner {
        var owner = StallReport.LockOwner(
            thread: .init(id: id), stack: stack, isRunning: isRunning, systemCall: call, waitsFor: waitsFor,
            priorityInversion: inversion)
        if waitsFor == .swiftTaskStatus { owner.waitsForLabel = "91 \"dns\"" }
        return owner
    }

    private static func activity(
        descriptor: String? = nil, isEmpty: Bool? = nil, awaited: String? = nil, isTimerDue: Bool? = nil,
        isNotRun: Bool? = nil
    ) -> StallReport.Activity {
        var activity = StallReport.Activity(turnsPerSecond: 100)
        (activity.readyDescriptor, activity.isModeEmpty) = (descriptor, isEmpty)
        (activity.awaitedMode, activity.isTimerDue, activity.isNotRun) = (awaited, isTimerDue, isNotRun)
        return activity
    }

    private static func spin(_ activity: StallReport.Activity) -> Stall {
        Stall(reportKind: .spinning, activity: activity)
    }

    private static func overdue(_ kind: StallReport.CauseKind, _ waits: StallReport.WaitKind...) -> Stall {
        Stall(kind: kind, loop: .operation, reportKind: .overdue, waits: waits)
    }

    private static let childWrites = StallReport.Peer(
        role: .child, pid: 9, name: "gzip", systemCall: "write", target: "pipe:[4]")
    private static let childWaits = StallReport.Peer(role: .child, pid: 9, name: "gzip", state: "R")
    private static let waitUntilExit = "$s10Foundation7ProcessC13waitUntilExityyF"
    private static let cat = StallReport.Peer(role: .writer, pid: 9, name: "cat")
    private static let own = StallReport.Peer(role: .writer, pid: 1, isThisProcess: true)

    /// The rule, the stall it is for, a part of the sentence, and the near miss with the rule that it has instead.
    private typealias Case = (rule: String, right: Stall, words: String, near: Stall, other: String)

    private static let cases: [Case] = lockCases + callCases + workCases + wholeCases

    private static let lockCases: [Case] = [
        (
            "selfDeadlock", Stall(kind: .deadlock, lock: lock(.pthreadMutex, [owner(10)], isDeadlock: true)),
            "again in load() (Store.swift:12)",
            Stall(kind: .deadlock, lock: lock(.pthreadMutex, [owner(11)], isDeadlock: true)), "circle"
        ),
        (
            "lockOrder",
            Stall(
                kind: .deadlock,
                lock: lock(.pthreadMutex, [owner(11, waitsFor: .swiftMutex), owner(10)], isDeadlock: true)),
            "load() (Store.swift:12) holds one and waits for the other, save() (Disk.swift:7)",
            Stall(
                kind: .deadlock,
                lock: lock(
                    .pthreadMutex, [owner(11, stack: nil, waitsFor: .swiftMutex), owner(10)], isDeadlock: true)),
            "circle"
        ),
        (
            "circle",
            Stall(
                kind: .deadlock,
                lock: lock(
                    .pthreadMutex,
                    [owner(11, waitsFor: .swiftMutex), owner(12, waitsFor: .swiftMutex), owner(10)], isDeadlock: true)),
            "in one order everywhere: they are taken in save() (Disk.swift:7).",
            Stall(
                kind: .deadlock,
                lock: lock(.pthreadMutex, [owner(11, waitsFor: .swiftMutex), owner(10)], isDeadlock: true)), "lockOrder"
        ),
        (
            "circle",
            Stall(
                kind: .deadlock,
                lock: lock(.pthreadMutex, [owner(11, waitsFor: .dispatchQueue), owner(10)], isDeadlock: true)),
            "Do not call sync in save() (Disk.swift:7)",
            Stall(kind: .lock, lock: lock(.dispatchQueue, [owner(11)])), "queue"
        ),
        (
            "inversion",
            Stall(
                kind: .lock,
                lock: lock(.pthreadMutex, [owner(inversion: .init(nice: 10, waiterNice: 0, queue: "export"))])),
            "Raise the QoS of the queue \"export\"",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [owner(isRunning: true)])), "ownerComputes"
        ),
        (
            "resumeUnderLock",
            Stall(
                kind: .deadlock,
                lock: lock(.pthreadMutex, [owner(11, waitsFor: .swiftTaskStatus), owner(10)], isDeadlock: true),
                outer: "swift_task_cancel", ownersOuter: "swift_continuation_resume"),
            "Resume task 91 \"dns\" in save() (Disk.swift:7) after",
            Stall(
                kind: .deadlock,
                lock: lock(.pthreadMutex, [owner(11, waitsFor: .swiftTaskStatus), owner(10)], isDeadlock: true),
                outer: "swift_task_cancel"), "circle"
        ),
        (
            "resumeUnderLock",
            Stall(
                kind: .deadlock,
                lock: lock(.swiftTaskStatus, [owner(11, waitsFor: .pthreadMutex), owner(10)], isDeadlock: true),
                outer: "swift_continuation_resume", ownersOuter: "swift_task_cancel"),
            "Resume task 91 \"dns\" in load() (Store.swift:12) after",
            Stall(
                kind: .deadlock,
                lock: lock(.swiftTaskStatus, [owner(11, waitsFor: .pthreadMutex), owner(10)], isDeadlock: true)),
            "circle"
        ),
        (
            "ownerWaits", Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("fsync", "/db/wal"))])),
            "call of fsync(/db/wal) in save() (Disk.swift:7)",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(isRunning: true, call: call("fsync", "/db/wal"))])),
            "ownerComputes"
        ),
        (
            "ownerComputes", Stall(kind: .lock, lock: lock(.swiftMutex, [owner(isRunning: true)])),
            "Make the section in save() (Disk.swift:7) shorter",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("nanosleep"))])), "ownerWaits"
        ),
        (
            "queue", Stall(kind: .lock, lock: lock(.dispatchQueue, [owner(isRunning: true)])),
            "Do not wait for the dispatch queue in load() (Store.swift:12)",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(isRunning: true)])), "ownerComputes"
        ),
        (
            "initializer", Stall(kind: .lock, lock: lock(.once, [owner(call: call("nanosleep"))])),
            "Run the initializer in save() (Disk.swift:7) early",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("nanosleep"))])), "ownerWaits"
        ),
        (
            "join", Stall(kind: .lock, lock: lock(.threadJoin, [owner(call: call("nanosleep"))])), "end of a thread",
            Stall(kind: .lock, lock: lock(.semaphore, [])), "signal"
        ),
        (
            "semaphoreInTask", Stall(kind: .lock, lock: lock(.dispatchSemaphore, []), isInTask: true),
            "withCheckedContinuation", Stall(kind: .lock, lock: lock(.dispatchSemaphore, [])), "signal"
        ),
        (
            "group", Stall(kind: .lock, lock: lock(.dispatchGroup, [])), "group.notify(queue: .main)",
            Stall(kind: .lock, lock: lock(.semaphore, [])), "signal"
        ),
        (
            "signal", Stall(kind: .lock, lock: lock(.condition, [])), "instead of waiting in load() (Store.swift:12)",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [])), "held"
        ),
        (
            "fileLock", Stall(kind: .lock, call: call("flock", "/db/lock"), lock: lock(.file, [])), "LOCK_NB",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [])), "held"
        ),
        (
            "libraryLock", Stall(kind: .lock, lock: lock(.stdio, [owner(call: call("write", "pipe:[4]"))])),
            "(it is in save() (Disk.swift:7))", Stall(call: call("write", "pipe:[4]")), "stream"
        ),
        (
            "libraryLock", Stall(kind: .lock, lock: lock(.dynamicLinker, [])), "libraries before the loop runs",
            Stall(kind: .lock, lock: lock(.futex, [])), "held"
        ),
        (
            "held", Stall(kind: .lock, lock: lock(.pthreadReadWriteLock, [])), "stallwatch stacks 4",
            Stall(kind: .lock, lock: lock(.pthreadReadWriteLock, [owner(isRunning: true)])), "ownerComputes"
        ),
    ]

    private static let callCases: [Case] = [
        (
            "polling", Stall(kind: .sleep, call: call("clock_nanosleep"), inner: ["libc!usleep", "package!retry()"]),
            "sleeps between its tries", Stall(kind: .sleep, call: call("clock_nanosleep")), "sleep"
        ),
        ("timeout", Stall(kind: .sleep, call: call("poll")), "time limit", Stall(call: call("poll")), "events"),
        (
            "sleep", Stall(kind: .sleep, call: call("clock_nanosleep", "500 ms")),
            "Move the sleep in load() (Store.swift:12) off the loop", Stall(kind: .sleep, call: call("poll")), "timeout"
        ),
        (
            "fsync", Stall(call: call("fdatasync", "/db/wal")), "fdatasync(/db/wal)",
            Stall(call: call("write", "/db/wal")),
            "fileWrite"
        ),
        (
            "fileRead", Stall(call: call("read", "/data/big")), "Move the read of /data/big in load()",
            Stall(call: call("read", "/dev/pts/0")), "stream"
        ),
        (
            "fileWrite", Stall(kind: .cpu, call: call("write", "/data/big"), kernelShare: 0.9), "write to /data/big",
            Stall(kind: .cpu, call: call("write", "/data/big"), kernelShare: 0.2), "compute"
        ),
        (
            "nameResolution",
            Stall(call: call("poll", "socket to 1.1.1.1:53"), inner: ["libc!poll", "libc!getaddrinfo"]),
            "Resolve the name in load()", Stall(call: call("connect", "1.1.1.1:80"), inner: ["libc!connect"]), "socket"
        ),
        (
            "socket", Stall(call: call("recvfrom", "socket to 10.0.0.2:80")), "recvfrom(socket to 10.0.0.2:80)",
            Stall(call: call("read", "/data/big")), "fileRead"
        ),
        (
            "childPipe", Stall(kind: .syscall, call: call("wait4", "process 9", [childWrites])),
            "gzip is blocked in a write to its full pipe",
            Stall(kind: .syscall, call: call("wait4", "process 9", [childWaits])), "child"
        ),
        (
            "child", Stall(kind: .syscall, call: call("waitid", "any child")), "Process.terminationHandler",
            Stall(kind: .syscall, call: call("ioctl", "/dev/dri/card0")), "call"
        ),
        (
            "child", Stall(call: call("ppoll", nil, [childWaits]), outer: waitUntilExit),
            "Do not wait for gzip (pid 9) in load()",
            Stall(
                call: call("ppoll"), inner: ["libFoundation!__CFRUNLOOP_IS_CALLING_OUT_TO_A_TIMER_CALLBACK_FUNCTION__"],
                outer: waitUntilExit), "events"
        ),
        (
            "childPipe", Stall(call: call("ppoll", nil, [childWrites]), outer: waitUntilExit),
            "gzip is blocked in a write to its full pipe",
            Stall(call: call("ppoll", or: "it may be any of 2 children, such as gzip"), outer: waitUntilExit), "child"
        ),
        (
            "close", Stall(call: call("close", "descriptor 4, which is no longer open")), "without SO_LINGER",
            Stall(call: call("recvfrom", "socket to /run/x.sock")), "stream"
        ),
        (
            "events", Stall(call: call("epoll_wait", "anon_inode:[eventpoll]")), "Do not call epoll_wait in load()",
            Stall(kind: .sleep, call: call("poll")), "timeout"
        ),
        (
            "stream", Stall(call: call("write", "pipe:[4]", [own])), "until pipe:[4] has room",
            Stall(call: call("write", "/data/big")), "fileWrite"
        ),
        (
            "call", Stall(call: call("connect", "/run/x.sock")), "Move the call of connect(/run/x.sock) in load()",
            Stall(call: call("connect", "10.0.0.2:80")), "socket"
        ),
        (
            "pipe", Stall(call: call("read", "pipe:[4]", [cat])), "Do not wait for cat in load()",
            Stall(call: call("read", "pipe:[4]", [own])), "stream"
        ),
    ]

    private static let workCases: [Case] = [
        (
            "json", Stall(kind: .cpu, inner: ["libFoundation!JSONDecoder.decode<A>(_:from:)"]), "Move the JSON work",
            Stall(kind: .cpu, inner: ["JSONDecoder.fake()"]), "compute"
        ),
        (
            "regex", Stall(kind: .cpu, inner: ["regex!Processor.cycle()"]), "regular expression in load()",
            Stall(kind: .cpu, inner: ["regex!Collection.firstRange(of:)"]), "compute"
        ),
        (
            "regex", Stall(kind: .cpu, inner: ["regex!Processor.cycle()"]), "regular expression in load()",
            Stall(kind: .cpu, inner: ["regex!Processor.cycle()", "package!parse()"]), "compute"
        ),
        (
            "image", Stall(kind: .cpu, inner: ["libpng!inflate_rows"]), "Move the image work",
            Stall(kind: .cpu, inner: ["libc!memcpy"]), "compute"
        ),
        (
            "compute", Stall(kind: .cpu), "Move load() (Store.swift:12) off the loop",
            Stall(kind: .cpu, inner: ["libpng!inflate_rows"]), "image"
        ),
        ("contention", Stall(kind: .cpuContention), "than there are CPUs", Stall(kind: .cpu), "compute"),
        ("quota", Stall(kind: .throttled), "cpu.max", Stall(kind: .cpuContention), "contention"),
        (
            "paging", Stall(kind: .paging, majorFaults: 70, pagedFile: "/db/pages"), "touch /db/pages ahead of time",
            Stall(call: call("read", "/db/pages")), "fileRead"
        ),
        (
            "paging", Stall(kind: .paging), "supplies its pages", Stall(kind: .cpu), "compute"
        ),
    ]

    private static let wholeCases: [Case] = [
        (
            "runLoopInPool",
            Stall(inner: ["libc!epoll_wait", "libFoundation!CFRunLoopRunSpecific"], loop: .globalQueue),
            "Give the run loop in load() (Store.swift:12) a thread of its own",
            Stall(
                inner: [
                    "libc!read", "libFoundation!__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__",
                    "libFoundation!CFRunLoopRunSpecific",
                ], loop: .globalQueue), "call"
        ),
        (
            "poolWaits", Stall(kind: .lock, loop: .cooperativePool, reportKind: .starvation), "await instead",
            Stall(kind: .lock, lock: lock(.semaphore, [])), "signal"
        ),
        (
            "poolWaits", Stall(kind: .sleep, loop: .threadPool, reportKind: .starvation), "a pool of their own",
            Stall(kind: .lock, lock: lock(.semaphore, [])), "signal"
        ),
        (
            "poolComputes", Stall(kind: .cpu, loop: .globalQueue, reportKind: .starvation), "at a time",
            Stall(kind: .cpu), "compute"
        ),
        (
            "pinnedBlocked",
            Stall(kind: .io, call: call("recvfrom", "socket to 10.0.0.1:53"), pool: .init(pinnedThreads: 1)),
            "load() (Store.swift:12): use an async call",
            Stall(kind: .lock, lock: lock(.dispatchSemaphore, []), pool: .init(pinnedThreads: 1)), "semaphoreInTask"
        ),
        (
            "pinnedComputing", Stall(kind: .cpu, pool: .init(pinnedThreads: 1, isComputing: true)), "Task.yield()",
            Stall(kind: .cpu), "compute"
        ),
        (
            "saturation", Stall(reportKind: .saturation, activity: activity()), "Do less in a turn of load()",
            Stall(kind: .cpu), "compute"
        ),
        (
            "ready", spin(activity(descriptor: "descriptor 7, pipe:[4]")), "Read descriptor 7, pipe:[4] to its end",
            spin(activity()), "resubmit"
        ),
        (
            "emptyMode", spin(activity(isEmpty: true)), "Add a source or a timer to the mode", spin(activity()),
            "resubmit"
        ),
        (
            "resubmit", spin(activity()), "what load() (Store.swift:12) submits again",
            spin(activity(descriptor: "descriptor 7")), "ready"
        ),
        (
            "mode", Stall(reportKind: .modeStarvation, activity: activity(awaited: "default", isTimerDue: true)),
            "Add the timer to the common modes", spin(activity(isEmpty: true)), "emptyMode"
        ),
        (
            "mode", Stall(reportKind: .modeStarvation, activity: activity(awaited: "default")),
            "CFRunLoopAddCommonMode", spin(activity(isEmpty: true)), "emptyMode"
        ),
        (
            "notRun", Stall(reportKind: .notRun, activity: activity(awaited: "default", isNotRun: true)),
            "Run the loop on its thread",
            Stall(reportKind: .modeStarvation, activity: activity(awaited: "default", isTimerDue: true)), "mode"
        ),
        (
            "continuation", overdue(.continuation, .task, .continuation),
            "in fetch() (Feed.swift:9), and why that came late",
            overdue(.deadlock, .task, .task), "taskCircle"
        ),
        (
            "taskCircle", overdue(.deadlock, .task, .task), "they await each other in fetch() (Feed.swift:9)",
            overdue(.continuation, .continuation), "continuation"
        ),
        (
            "longSleep", overdue(.sleep, .task, .sleep), "Shorten the sleep in fetch() (Feed.swift:9)",
            overdue(.sleep, .task, .running), "heldUp"
        ),
        (
            "heldUp", overdue(.lock, .task, .running), "Do not block a thread in fetch() (Feed.swift:9)",
            overdue(.sleep, .sleep), "longSleep"
        ),
        (
            "heldUp", overdue(.cpu, .pool, .running), "Make fetch() (Feed.swift:9) shorter",
            overdue(.unknown, .pool, .running), "look"
        ),
    ]

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
        #expect(report.advice?.text.contains("looking again and again in load() (Store.swift:12)") == true)
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
