@testable import StallReports

// The right stall and the near miss of each rule.

extension AdviceTests {
    /// The rule, the stall it is for, a part of the sentence, and the near miss with the rule that it has instead.
    typealias Case = (rule: String, right: Stall, words: String, near: Stall, other: String)

    static let cases: [Case] = lockCases + callCases + workCases + wholeCases

    static let lockCases: [Case] = [
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
            "before save() (Disk.swift:7) resumes task 91 \"dns\"",
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
            "before load() (Store.swift:12) resumes task 91 \"dns\"",
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
            "ownerWaits", Stall(kind: .lock, lock: lock(.pthreadMutex, [owner(call: call("read", "pipe:[4]"))])),
            "or the lock was never released: look for a return without unlock",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [owner(isRunning: true)])), "ownerComputes"
        ),
        (
            "ownerComputes", Stall(kind: .lock, lock: lock(.swiftMutex, [owner(isRunning: true)])),
            "Make the section in save() (Disk.swift:7) shorter",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("nanosleep"))])), "ownerWaits"
        ),
        (
            "ownerComputes", Stall(kind: .lock, lock: lock(.pthreadMutex, [owner(isRunning: true, waitedForCPU: 310)])),
            "the section in save() (Disk.swift:7) shorter, or give the process more CPU: "
                + "with the lock held it waited for a CPU for 310 of 452 ms.",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [owner(call: call("nanosleep"), waitedForCPU: 20)])),
            "ownerWaits"
        ),
        (
            "ownerComputes",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(stack: nil, isRunning: true, waitedForCPU: 400)])),
            "the section of thread 11 shorter", Stall(kind: .lock, lock: lock(.swiftMutex, [])), "held"
        ),
        (
            "queue", Stall(kind: .lock, lock: lock(.dispatchQueue, [owner(call: call("nanosleep"))]), isInTask: true),
            "call async, and resume a continuation (withCheckedContinuation).",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("nanosleep"))]), isInTask: true), "ownerWaits"
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
            "join",
            Stall(kind: .lock, lock: lock(.threadJoin, [owner(call: call("ppoll"))]), ownersOuter: "RunLoop.run()"),
            "RunLoop.run() goes on as long as it has a source", Stall(kind: .lock, lock: lock(.semaphore, [])), "signal"
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
            "group",
            Stall(kind: .lock, lock: lock(.dispatchGroup, []), inner: ["libc!dispatch_block_wait"]),
            "the work item's notify(queue: .main)", Stall(kind: .lock, lock: lock(.semaphore, [])), "signal"
        ),
        (
            "group",
            Stall(kind: .lock, lock: lock(.condition, []), inner: ["libFoundation!Operation.waitUntilFinished"]),
            "by addBarrierBlock or a completionBlock", Stall(kind: .lock, lock: lock(.condition, [])), "signal"
        ),
        (
            "signal", Stall(kind: .lock, lock: lock(.condition, [])), "call back (DispatchQueue.main.async).",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [])), "held"
        ),
        (
            "fileLock", Stall(kind: .lock, call: call("flock", "/db/lock"), lock: lock(.file, [])),
            "when it lasts again: lslocks.", Stall(kind: .lock, lock: lock(.pthreadMutex, [])), "held"
        ),
        (
            "fileLock", Stall(kind: .lock, call: call("flock", "/db/lock", [own]), lock: lock(.file, [])),
            "try the lock (LOCK_NB) and come back later, or let go of it sooner",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [])),
            "held"
        ),
        (
            "libraryLock", Stall(kind: .lock, lock: lock(.stdio, [owner(call: call("write", "pipe:[4]"))])),
            "(it is in save() (Disk.swift:7))", Stall(call: call("write", "pipe:[4]")), "stream"
        ),
        (
            "libraryLock", Stall(kind: .lock, lock: lock(.stdio, [owner(isRunning: true)])),
            "prints them (it is in save() (Disk.swift:7)).", Stall(call: call("write", "pipe:[4]")), "stream"
        ),
        (
            "libraryLock", Stall(kind: .lock, lock: lock(.dynamicLinker, [])), "libraries before the loop runs",
            Stall(kind: .lock, lock: lock(.futex, [])), "held"
        ),
        (
            "held",
            Stall(
                kind: .lock, lock: lock(.swiftTaskStatus, [owner(call: call("nanosleep"))]),
                ownersOuter: "swift_task_cancel"),
            "Do not block in a cancellation handler, as in save() (Disk.swift:7): cancel() keeps the status lock of task 91",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("nanosleep"))])), "ownerWaits"
        ),
        (
            "held", Stall(kind: .lock, lock: lock(.swiftTaskStatus, [owner(call: call("nanosleep"))])),
            "Let go of the lock in save() (Disk.swift:7)",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("nanosleep"))])), "ownerWaits"
        ),
        (
            "held", Stall(kind: .lock, lock: lock(.futex, [])),
            "If load() (Store.swift:12) waits for a result, let its thread call back (DispatchQueue.main.async); if",
            Stall(kind: .lock, lock: lock(.swiftMutex, [owner(call: call("nanosleep"))])), "ownerWaits"
        ),
        (
            "held",
            Stall(
                kind: .lock, lock: lock(.futex, []),
                inner: ["libc!syscall", "libc!_dispatch_thread_event_wait_slow", "libc!dispatch_apply_f"]),
            "it waits until other threads have done its last iterations (concurrentPerform",
            Stall(kind: .lock, lock: lock(.dispatchQueue, [])), "queue"
        ),
        (
            "held", Stall(kind: .lock, isInTask: true), "waits for a result, await it (withCheckedContinuation);",
            Stall(kind: .lock, lock: lock(.condition, []), isInTask: true), "semaphoreInTask"
        ),
        (
            "held", Stall(kind: .lock, lock: lock(.pthreadReadWriteLock, [owner(waitsFor: .dispatchSemaphore)])),
            "Let go of the lock in save() (Disk.swift:7) before it waits for a semaphore.",
            Stall(kind: .lock, lock: lock(.pthreadReadWriteLock, [owner(call: call("read"))])), "ownerWaits"
        ),
        (
            "held", Stall(kind: .lock, lock: lock(.pthreadMutex, [owner(waitsFor: .dispatchSemaphore)])),
            "Let go of the lock in save() (Disk.swift:7) before it waits for a semaphore.",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [owner(call: call("futex"))])), "ownerWaits"
        ),
        (
            "signal", Stall(kind: .lock, lock: lock(.systemSemaphoreZero, [])),
            "try it (IPC_NOWAIT) and come back later", Stall(kind: .lock, lock: lock(.pthreadMutex, [])), "held"
        ),
        (
            "signal", Stall(kind: .lock, lock: lock(.systemSemaphore, []), isInTask: true), "try it (IPC_NOWAIT)",
            Stall(kind: .lock, lock: lock(.semaphore, []), isInTask: true), "semaphoreInTask"
        ),
        (
            "held", Stall(kind: .lock, lock: lock(.pthreadReadWriteLock, [])),
            "when it lasts again: stallwatch stacks 4700",
            Stall(kind: .lock, lock: lock(.pthreadReadWriteLock, [owner(isRunning: true)])), "ownerComputes"
        ),
    ]

    static let callCases: [Case] = [
        (
            "polling", Stall(kind: .sleep, call: call("clock_nanosleep"), inner: ["libc!usleep", "package!retry()"]),
            "sleeps, perhaps between its tries", Stall(kind: .sleep, call: call("clock_nanosleep")), "sleep"
        ),
        (
            "timeout", Stall(kind: .sleep, call: call("poll")), "load() (Store.swift:12): let a timer call",
            Stall(call: call("poll")), "events"
        ),
        (
            "sleep", Stall(kind: .sleep, call: call("clock_nanosleep", "500 ms"), loop: .eventLoop),
            "(EventLoop.scheduleTask)", Stall(kind: .sleep, call: call("poll"), loop: .eventLoop), "timeout"
        ),
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
            "socket", Stall(call: call("sendto", "socket to 10.0.0.2:80")), "returns when there is room for the data",
            Stall(call: call("sendto", "socket to /dev/log")), "stream"
        ),
        (
            "childPipe", Stall(kind: .syscall, call: call("wait4", "process 9", [childWrites])),
            "gzip was seen blocked in a write to its full pipe",
            Stall(kind: .syscall, call: call("wait4", "process 9", [childWaits])), "child"
        ),
        (
            "child", Stall(kind: .syscall, call: call("waitid", "any child")), "Process.terminationHandler",
            Stall(kind: .syscall, call: call("ioctl", "/dev/dri/card0")), "call"
        ),
        (
            "child", Stall(kind: .syscall, call: call("wait4", "process 9", [childWaits])),
            "read its output meanwhile", Stall(kind: .syscall, call: call("wait4", "process 9", [childWrites])),
            "childPipe"
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
            "gzip was seen blocked in a write to its full pipe",
            Stall(call: call("ppoll", or: "it may be any of 2 children, such as gzip"), outer: waitUntilExit), "child"
        ),
        (
            "close", Stall(call: call("close", "descriptor 4, which is no longer open")), "set no SO_LINGER",
            Stall(call: call("recvfrom", "socket to /run/x.sock")), "stream"
        ),
        (
            "events", Stall(call: call("epoll_wait", "anon_inode:[eventpoll]")), "Do not call epoll_wait in load()",
            Stall(kind: .sleep, call: call("poll")), "timeout"
        ),
        (
            "events",
            Stall(call: call("poll", "socket to 10.0.0.2:5432"), inner: ["libc!poll", "libsqlite3!sqlite3_step"]),
            "the library that it calls waits in poll(socket to 10.0.0.2:5432)",
            Stall(kind: .sleep, call: call("poll")), "timeout"
        ),
        (
            "stream", Stall(call: call("write", "pipe:[4]", [own])), "until pipe:[4] has room",
            Stall(call: call("write", "/data/big")), "fileWrite"
        ),
        (
            "stream", Stall(call: call("accept4", "socket at 0.0.0.0:80")),
            "until socket at 0.0.0.0:80 gets a connection",
            Stall(call: call("recvfrom", "socket to 10.0.0.2:80")), "socket"
        ),
        (
            "call", Stall(call: call("read", "/sys/class/hwmon/hwmon3/temp1_input")),
            "Move the call of read(/sys/class/hwmon/hwmon3/temp1_input) in load()",
            Stall(call: call("read", "/dev/input/event3")), "stream"
        ),
        (
            "call", Stall(call: call("connect", "/run/x.sock")), "Move the call of connect(/run/x.sock) in load()",
            Stall(call: call("connect", "10.0.0.2:80")), "socket"
        ),
        (
            "call", Stall(kind: .syscall, call: call("poll", "a signal")), "Do not wait for a signal in load()",
            Stall(kind: .sleep, call: call("poll")), "timeout"
        ),
        (
            "pipe", Stall(call: call("read", "pipe:[4]", [cat])), "Do not wait for cat in load()",
            Stall(call: call("read", "pipe:[4]", [cat, own])), "stream"
        ),
    ]

    static let workCases: [Case] = [
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
            "compute", Stall(kind: .cpu), "do it in pieces, each of which submits the next with async",
            Stall(kind: .cpu, inner: ["libpng!inflate_rows"]), "image"
        ),
        (
            "compute", Stall(kind: .cpu, isInTask: true), "split it with await Task.yield()",
            Stall(kind: .cpu, inner: ["libpng!inflate_rows"], isInTask: true), "image"
        ),
        ("contention", Stall(kind: .cpuContention), "than there are CPUs", Stall(kind: .cpu), "compute"),
        (
            "contention", Stall(kind: .cpuContention, competitors: .init(own: 0, others: 8, processors: 2)),
            "at least 8 of their threads were ready. Which ones: top.", Stall(kind: .cpu), "compute"
        ),
        (
            "contention", Stall(kind: .cpuContention, onCPU: 891),
            "Move load() (Store.swift:12) off the loop first: with a CPU, too, the turn takes 892 ms.",
            Stall(kind: .cpu, onCPU: 891), "compute"
        ),
        (
            "contention", Stall(kind: .cpuContention, usableProcessors: .init(usable: 1, online: 8)),
            "run less on the only one that it may use", Stall(kind: .cpu), "compute"
        ),
        (
            "contention", Stall(kind: .cpuContention, usableProcessors: .init(usable: 2, online: 8)),
            "run less on the 2 that it may use", Stall(kind: .throttled), "quota"
        ),
        (
            "signalHandler", Stall(kind: .cpu, interrupted: "work()"),
            "Let the signal handler load() (Store.swift:12) only note the signal", Stall(kind: .cpu), "compute"
        ),
        (
            "signalHandler",
            Stall(
                kind: .deadlock, lock: lock(.pthreadMutex, [owner(10)], isDeadlock: true), interrupted: "work()"),
            "code that may wait and lock",
            Stall(kind: .deadlock, lock: lock(.pthreadMutex, [owner(10)], isDeadlock: true)), "selfDeadlock"
        ),
        ("quota", Stall(kind: .throttled), "cpu.max", Stall(kind: .cpuContention), "contention"),
        (
            "paging", Stall(kind: .paging, majorFaults: 70, pagedFile: "/db/pages"),
            "Move load() (Store.swift:12) off the loop, or have another thread read pages ahead of time",
            Stall(call: call("read", "/db/pages")), "fileRead"
        ),
        (
            "paging", Stall(kind: .paging), "may supply its pages", Stall(kind: .cpu), "compute"
        ),
    ]

    static let wholeCases: [Case] = [
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
            "poolWaits", Stall(kind: .sleep, loop: .taskExecutor, reportKind: .starvation), "await instead",
            Stall(kind: .sleep, call: call("nanosleep"), loop: .taskExecutor), "sleep"
        ),
        (
            "poolWaits", Stall(kind: .sleep, loop: .threadPool, reportKind: .starvation), "let a timer call",
            Stall(kind: .lock, lock: lock(.semaphore, [])), "signal"
        ),
        (
            "poolWaits", Stall(kind: .io, loop: .threadPool, reportKind: .starvation), "a pool of their own",
            Stall(kind: .sleep, loop: .threadPool, reportKind: .starvation), "poolWaits"
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
            "saturation", Stall(reportKind: .saturation, activity: activity()), "Do less in load() (Store.swift:12)",
            Stall(kind: .cpu), "compute"
        ),
        (
            "saturation", Stall(reportKind: .saturation, activity: activity(), callout: .mainQueue),
            "Move load() (Store.swift:12) off the loop", Stall(kind: .cpu), "compute"
        ),
        (
            "ready", spin(activity(descriptor: "descriptor 7, pipe:[4]")),
            "Read what there is in descriptor 7, pipe:[4]",
            spin(activity()), "resubmit"
        ),
        (
            "emptyMode", spin(activity(isEmpty: true)), "Run the loop in load() (Store.swift:12) in a mode that has",
            spin(activity()), "resubmit"
        ),
        (
            "resubmit", spin(activity()), "what load() (Store.swift:12) submits again",
            spin(activity(descriptor: "descriptor 7")), "ready"
        ),
        (
            "mode", Stall(reportKind: .modeStarvation, activity: activity(awaited: "default", isTimerDue: true)),
            "or to the common modes with", spin(activity(isEmpty: true)), "emptyMode"
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
            "notRun",
            Stall(
                reportKind: .notRun, activity: activity(awaited: "default", isNotRun: true),
                outer: "_dispatch_sig_thread"), "a synchronous main", Stall(kind: .cpu), "compute"
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
            "heldUp", overdue(.lock, .executor, .running), "Do not block a thread in fetch() (Feed.swift:9)",
            overdue(.sleep, .sleep), "longSleep"
        ),
        (
            "heldUp", overdue(.cpu, .pool, .running), "Make fetch() (Feed.swift:9) shorter",
            overdue(.unknown, .pool, .running), "look"
        ),
    ]
}
