@testable import StallReports

// The right stall and the near miss of each rule for locks and deadlocks.

extension AdviceTests {
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
            "fileLock", Stall(kind: .lock, call: call("fcntl", "/db/lock", [own]), lock: lock(.file, [])),
            "try the lock (F_OFD_SETLK) and come back later, or let go of it sooner",
            Stall(kind: .lock, lock: lock(.pthreadMutex, [])), "held"
        ),
        (
            "fileLock", Stall(kind: .lock, call: call("fcntl", "/db/lock"), lock: lock(.file, [])),
            "try it (F_SETLK) and come back later", Stall(kind: .lock, lock: lock(.pthreadMutex, [])), "held"
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
            "when it lasts again: stallwatch stacks notes",
            Stall(kind: .lock, lock: lock(.pthreadReadWriteLock, [owner(isRunning: true)])), "ownerComputes"
        ),
    ]
}
