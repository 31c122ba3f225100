@testable import StallReports

// The right stall and the near miss of each rule; those of the rules for locks are in AdviceTests+LockCases.swift.

extension AdviceTests {
    /// The rule, the stall it is for, a part of the sentence, and the near miss with the rule that it has instead.
    typealias Case = (rule: String, right: Stall, words: String, near: Stall, other: String)

    static let cases: [Case] = lockCases + callCases + workCases + wholeCases

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
            "in fetch() (Feed.swift:9), and what that waits for",
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
