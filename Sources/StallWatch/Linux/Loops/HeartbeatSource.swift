import StallReports
import LinuxSupport
import StackCapture
internal import CLinux
import Dispatch
import Glibc
import Synchronization

#if NIO
    import NIOCore
#endif

/// Follows a loop that cannot be observed, by sending it heartbeats: the time until a small item has run is one turn.
///
/// The watchdog checks the loop twice per threshold. If the loop does not wait for work then, it sends an item, but never
/// while one is pending, so a stuck loop has one pending item at most. Turns count only once the loop is known to run
/// items: it ran one, or its caller knows. Until then it may not be running at all, and an item is sent in any case.
final class HeartbeatSource: LoopSource {
    /// The name of heartbeats that are tasks, which are not the app's.
    static let taskName = "stallwatch heartbeat"

    let kind: LoopKind
    /// The name of the threads of a global queue; `nil` for other loops, and if it is not known.
    let workers: String?
    private let send: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let canSend: @Sendable () -> Bool
    private let owner: @Sendable () -> CaptureTarget?
    let isUnneeded: @Sendable () -> Bool
    /// Returns whether the loop does not run its items on purpose, or is reported for it; takes an item's age in nanoseconds.
    private let findsExcuse: @Sendable (UInt64) -> Bool
    private let whenRemoved: @Sendable () -> Void
    /// Finds out that the loop waits for work; `nil` if that cannot be known.
    private let idle: (any IdleCheck)?

    /// The number of heartbeats, of all monitors, that wait in the main queue.
    static var pendingOnMainQueue: Int { pending.load(ordering: .relaxed) }
    fileprivate static let pending = Atomic<Int>(0)

    private let isPending = Atomic<Bool>(false)
    /// When the last item was sent, or the loop was last found waiting for work.
    private let lastCheck = Atomic<UInt64>(0)
    private let lastSent = Atomic<UInt64>(0)
    private let lastRan = Atomic<UInt64>(0)
    /// When the loop was last found waiting for work; 0 if it never was.
    private let lastIdle = Atomic<UInt64>(0)
    /// The last time before the last item at which the loop is known to have been healthy.
    private let healthyBefore = Atomic<UInt64>(0)

    /// Creates a source, whose first item counts if the loop is known to run items (`isServed`).
    ///
    /// `send` runs on the watchdog, the first time on the thread that begins the watch, and must not wait. `owner` returns
    /// the thread that runs the loop now; `nil` for a loop that keeps the thread of its last item. `isUnneeded`: the loop
    /// has ended, or is observed in a better way. While `isExcused`, an item may be late. Unless `canSend`, the next
    /// check tries again.
    init(
        kind: LoopKind, isServed: Bool = false, executor: UInt64 = 0, workers: String? = nil,
        owner: @escaping @Sendable () -> CaptureTarget? = { nil },
        idle: (any IdleCheck)? = nil,
        onlyIf canSend: @escaping @Sendable () -> Bool = { true },
        unless isUnneeded: @escaping @Sendable () -> Bool = { false },
        excusedIf isExcused: @escaping @Sendable (UInt64) -> Bool = { _ in false },
        whenRemoved: @escaping @Sendable () -> Void = {},
        send: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        self.kind = kind
        self.workers = workers
        self.executor = executor
        if isServed { lastRan.store(monotonicNow(), ordering: .relaxed) }
        self.send = send
        self.canSend = canSend
        self.owner = owner
        self.idle = idle
        self.isUnneeded = isUnneeded
        self.findsExcuse = isExcused
        self.whenRemoved = whenRemoved
    }

    /// Makes the next check due at once, so that it is known whether the loop waits for work now.
    func checkSoon() { lastCheck.store(0, ordering: .relaxed) }

    func markServed() {
        _ = lastRan.compareExchange(expected: 0, desired: monotonicNow(), ordering: .relaxed)
    }

    /// Sends the loop a heartbeat if one is due and the loop does not wait for work; returns when the next one is due, in
    /// monotonic nanoseconds, or `nil` while none is planned.
    func beat(_ recorder: TurnRecorder, threshold: UInt64, at now: UInt64) -> UInt64? {
        let interval = max(threshold / 2, 1)
        // The checks of all loops with this threshold are due at the same time, so that the watchdog wakes up once.
        let next = (now / interval + 1) &* interval
        if isUnneeded() {
            // What observes the loop in a better way sees that it runs items.
            markServed()
            lastIdle.store(now, ordering: .relaxed)
            return nil
        }
        // While an item is pending, the age of its turn decides when to poll again; its end then wakes the watchdog.
        // Before the first item has run there is no turn, so poll again.
        if isPending.load(ordering: .acquiring) {
            return lastRan.load(ordering: .relaxed) == 0 ? next : nil
        }
        let due = (lastCheck.load(ordering: .relaxed) / interval + 1) &* interval
        guard now >= due else { return due }
        lastCheck.store(now, ordering: .relaxed)
        let ran = lastRan.load(ordering: .relaxed)
        let delay = ran &- min(lastSent.load(ordering: .relaxed), ran)
        if ran != 0, idle?.isIdle(thread: recorder.lastThread, lastDelay: delay) ?? false {
            lastIdle.store(now, ordering: .relaxed)
            return next
        }
        guard canSend() else { return next }
        isPending.store(true, ordering: .relaxed)
        lastSent.store(now, ordering: .relaxed)
        healthyBefore.store(max(ran, lastIdle.load(ordering: .relaxed)), ordering: .relaxed)
        if ran != 0 {
            idle?.markSent(to: recorder.lastThread)
            recorder.beginTurn(at: now)
        }
        send { [self] in
            recorder.rememberThread()
            let ran = monotonicNow()
            recorder.endTurn(at: ran)
            lastRan.store(ran, ordering: .relaxed)
            isPending.store(false, ordering: .releasing)
        }
        return next
    }

    func target(of recorder: TurnRecorder) -> CaptureTarget {
        switch kind {
        case .globalQueue, .cooperativePool: .pool
        default:
            owner() ?? recorder.lastThread.map(CaptureTarget.thread) ?? .unknown
        }
    }

    func isWaitingUnobserved() -> Bool {
        let (now, sent) = (monotonicNow(), lastSent.load(ordering: .relaxed))
        return isUnneeded() || findsExcuse(now - min(sent, now))
    }

    var width: Int? { idle?.width }

    /// The queues of the task pool in which an item of this source waits now, `nil` for one that is not confirmed.
    var pendingHeartbeats: [UInt64?] { pendingPools.map(\.idle.queue) }

    /// The priorities of the items of this source that wait in the task pool now; `nil` if none does.
    var pendingPriorities: [String]? {
        let priorities = pendingPools.map { $0.priority == .high ? "high" : "medium" }
        return priorities.isEmpty ? nil : priorities
    }

    private var pendingPools: [(priority: TaskPriority, idle: TaskPoolIdleCheck)] {
        ((idle as? TaskPools)?.all ?? []).filter { $0.idle.pending.load(ordering: .relaxed) > 0 }
    }

    /// The address of the task executor that it sends to; 0 for other loops.
    let executor: UInt64

    var isKnownToRun: Bool { lastRan.load(ordering: .relaxed) != 0 }

    // The main thread's id is the process's (gettid(2)).
    var knownThread: Int32? { kind == .mainQueue ? getpid() : nil }

    func remove() { whenRemoved() }

    /// Returns by how many nanoseconds a turn may have begun earlier.
    func startUncertainty(of began: UInt64) -> UInt64? {
        // Not `lastRan`: a late watchdog may poll a turn that is already over.
        let healthy = healthyBefore.load(ordering: .relaxed)
        return began > healthy ? began - healthy : 0
    }
}

extension LoopSource where Self == HeartbeatSource {
    static func queue(_ queue: DispatchQueue) -> HeartbeatSource {
        let owner = QueueOwner(queue)
        return HeartbeatSource(
            kind: .dispatchQueue, owner: { owner.current() ?? CaptureTarget.unknown }, idle: owner,
            excusedIf: { _ in owner.isSuspended }
        ) { item in
            queue.async {
                owner.confirm()
                item()
            }
        }
    }

    /// Returns a source for the main dispatch queue, in use until the main run loop runs; called on the main actor, as
    /// in an async `main`, it also counts a stall that has already begun.
    ///
    /// The queue is not served by a run of the loop in one of its own blocks, as `Process.waitUntilExit()` makes it
    /// (CFRunLoop.c: `libdispatchQSafe`), so it is in use there, too. It is excused by a turn of the run that takes half of the
    /// wait: if that is long, it is a stall itself.
    static func mainQueue(_ recorder: TurnRecorder, besides runLoop: LoopMonitor? = nil) -> HeartbeatSource {
        let owner = QueueOwner(.main)
        // A program's own executor of the main actor does not serve the queue.
        let isServed = MainActorExecutor.custom == nil && isOnMainActor(owner)
        if isServed { recorder.rememberThread() }
        return HeartbeatSource(
            kind: .mainQueue, isServed: isServed,
            owner: {
                if let current = owner.current() { return current }
                // The main thread keeps the queue, in the main run loop and at the beginning of an async `main`; a worker
                // gives it back after each item.
                return recorder.lastThread == getpid() ? nil : .unknown
            }, idle: owner,
            unless: {
                (runLoop?.recorder.servesMainQueue ?? false) && HeartbeatSource.mayRunLoopServe(owner.current())
            },
            excusedIf: { age in (runLoop?.turnDuration(at: monotonicNow())).map { $0 >= age / 2 } ?? false }
        ) { item in
            HeartbeatSource.pending.wrappingAdd(1, ordering: .relaxed)
            DispatchQueue.main.async {
                HeartbeatSource.pending.wrappingSubtract(1, ordering: .relaxed)
                owner.confirm()
                runLoop?.recorder.markMainQueueRun()
                item()
            }
        }
    }

    /// Whether the main run loop may serve the main queue: the main thread keeps it, or its owner is not known.
    ///
    /// In `dispatchMain()` and an async `main` that thread gives it up for ever, and may have run the loop before, as
    /// `Process.waitUntilExit()` does.
    static func mayRunLoopServe(_ owner: CaptureTarget?) -> Bool { owner == nil || owner == .thread(getpid()) }

    /// Whether the caller is a task on the thread that runs the main actor now: the main thread until an async `main`
    /// suspends, then the one that drains the main queue.
    private static func isOnMainActor(_ main: QueueOwner) -> Bool {
        // Also without a task: a block on the main queue confirms the layout.
        main.confirm()
        guard withUnsafeCurrentTask(body: { $0 != nil }) else { return false }
        return main.current() == .thread(clinux_gettid()) || clinux_gettid() == getpid()
    }

    /// Returns a source for a global queue, whose first item counts: libdispatch serves it always, and it may be full.
    static func globalQueue(_ quality: DispatchQoS.QoSClass) -> HeartbeatSource {
        let queue = DispatchQueue.global(qos: quality)
        let idle = GlobalQueueIdleCheck(queue)
        // libdispatch names its threads with the end of their queue's label.
        let name = String(queue.label.suffix(15))
        let workers = StallReport.ThreadDescription.workers.contains(name) ? name : nil
        return HeartbeatSource(kind: .globalQueue, isServed: true, workers: workers, idle: idle) { item in
            CUnwindEngine.makingThreads { queue.async(execute: item) }
            idle.confirm()
        }
    }

    /// Returns a source that sends a task of each priority that is watched, and waits for the last of them.
    ///
    /// Each priority has a queue with threads of its own (DispatchGlobalExecutor.cpp). A task that the main thread starts outside
    /// of tasks has the priority high, and a detached one medium.
    ///
    /// Where the program has put an executor in the pool's place, whose `enqueue` may wait, they have a thread of their own
    /// from the second one on.
    static func cooperativePool(
        detach: @escaping @Sendable (TaskPriority, @escaping @Sendable () -> Void) -> Void = { priority, body in
            _ = Task.detached(name: HeartbeatSource.taskName, priority: priority) { body() }
        }
    ) -> HeartbeatSource {
        let pools = TaskPools([.high, .medium])
        let thread = SubmittingThread()
        return HeartbeatSource(kind: .cooperativePool, idle: pools, whenRemoved: { thread.end() }) { item in
            let sent = TaskPools.Sent(pools.all.count, item)
            let send = { @Sendable in
                CUnwindEngine.makingThreads {
                    for (priority, idle) in pools.all {
                        idle.pending.wrappingAdd(1, ordering: .relaxed)
                        detach(priority) {
                            idle.pending.wrappingSubtract(1, ordering: .relaxed)
                            idle.confirm()
                            sent.hasRun()
                        }
                    }
                }
            }
            // Where it is the pool, the watchdog itself: another thread may get its CPU late, and the pool would be blamed.
            let isReplaced = pools.all.contains { $0.idle.isReplaced }
            if !isReplaced || !thread.submit(send) { send() }
        }
    }
}

#if NIO
    extension LoopSource where Self == HeartbeatSource {
        /// Returns a source for an event loop.
        ///
        /// A loop of SwiftNIO's own takes a task at once, but the `execute` of a program's own loop may wait for a lock
        /// that a stalled thread holds: one separate thread makes all calls of such a loop.
        static func eventLoop(_ loop: any EventLoop) -> HeartbeatSource {
            let end = EventLoopEnd()
            let thread = SubmittingThread { end.cancel() }
            let isOfSwiftNIO = HeartbeatSource.isOfSwiftNIO(loop)
            if isOfSwiftNIO { end.watch(loop) }
            return HeartbeatSource(
                kind: .eventLoop, idle: EventLoopIdleCheck(), onlyIf: { isOfSwiftNIO || thread.begin() },
                unless: { end.hasCome }, whenRemoved: { if isOfSwiftNIO { end.cancel() } else { thread.end() } }
            ) { item in
                if isOfSwiftNIO { return loop.execute(item) }
                thread.submit {
                    end.watch(loop)
                    if !end.hasCome { loop.execute(item) }
                }
            }
        }

        /// Whether the loop is one of a `MultiThreadedEventLoopGroup`, whose type is internal.
        static func isOfSwiftNIO(_ loop: any EventLoop) -> Bool {
            String(reflecting: type(of: loop)) == "NIOPosix.SelectableEventLoop"
        }
    }

    /// Notices that an event loop shuts down, by a callback that is never due and is cancelled then: NIO does not tell,
    /// and a task sent to a closed loop may end the process (`SelectableEventLoop._schedule0`).
    private final class EventLoopEnd: NIOScheduledCallbackHandler, Sendable {
        private let flag = Atomic<Bool>(false)
        // A mutex for the compiler: one thread begins the watch, and ends it.
        private let callback = Mutex<NIOScheduledCallback?>(nil)

        var hasCome: Bool { flag.load(ordering: .acquiring) }

        /// Begins to watch, unless that has begun.
        func watch(_ loop: any EventLoop) {
            guard !hasCome, callback.withLock({ $0 == nil }) else { return }
            guard let begun = try? loop.scheduleCallback(at: .distantFuture, handler: self) else {
                // Only a loop that has already shut down refuses it.
                return flag.store(true, ordering: .releasing)
            }
            callback.withLock { $0 = begun }
        }

        func cancel() { callback.withLock { $0.take() }?.cancel() }

        /// Never called: the callback is due in 292 years.
        func handleScheduledCallback(eventLoop: some EventLoop) {}

        func didCancelScheduledCallback(eventLoop: some EventLoop) {
            flag.store(true, ordering: .releasing)
        }
    }
#endif
