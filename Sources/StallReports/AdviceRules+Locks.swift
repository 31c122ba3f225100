// The rules for locks, and for deadlocks: see AdviceRules.swift.

extension AdviceRule {
    /// What is no lock that could be taken in another order: a thread waits until another one has done something.
    private static let ends: Set<StallReport.LockKind> = [.threadJoin, .once, .dispatchOnce]

    static let mutexes: Set<StallReport.LockKind> = [
        .pthreadMutex, .swiftMutex, .pthreadReadWriteLock, .dispatchUnfairLock,
    ]

    // MARK: - Deadlocks

    static let deadlocks = [
        // Silent for a deadlock in which no task is resumed, or none canceled.
        AdviceRule(id: "resumeUnderLock", topic: "deadlock") { facts in
            guard let (task, resuming, canceling) = resumption(in: facts) else { return nil }
            return "Let go of the lock before \(resuming) resumes task \(task): another thread cancels the task, "
                + "and its cancellation handler waits for that lock in \(canceling)."
        },
        // Silent for two threads that wait for each other.
        AdviceRule(id: "selfDeadlock", topic: "deadlock") { facts in
            guard facts.cause.kind == .deadlock, let lock = facts.cause.lock, lock.owners.count == 1,
                let place = facts.culprit, lock.owners[0].thread.id == facts.report.loop.thread?.id
            else { return nil }
            if lock.kind == .dispatchQueue {
                return "Do not call sync in \(place) on a queue that it runs on already: call the work directly."
            }
            guard mutexes.contains(lock.kind) else { return nil }
            return "Do not take the lock again in \(facts.culpritsWay ?? place): this thread holds it already. "
                + "Move the work to a function that expects the lock to be held, and call that one."
        },
        // Silent for a cycle in which a thread's line is not known.
        AdviceRule(id: "lockOrder", topic: "deadlock") { facts in
            guard facts.cause.kind == .deadlock, let lock = facts.cause.lock, lock.isDeadlock, lock.owners.count == 2,
                lock.owners[1].thread.id == facts.report.loop.thread?.id,
                let here = facts.culpritsWay, let other = lock.owners[0].stack,
                let there = facts.report.provenFrames(ofStack: other).way, here != there,
                mutexes.contains(lock.kind), lock.owners[0].waitsFor.map(mutexes.contains) == true
            else { return nil }
            return "Take the two locks in the same order in both places: \(here) holds one and waits for the other, "
                + "\(there) the other way round."
        },
        // Silent for two threads whose lines are known.
        AdviceRule(id: "circle", topic: "deadlock") { facts in
            guard facts.cause.kind == .deadlock else { return nil }
            guard let lock = facts.cause.lock else {
                return "Let the initializer of a global read no global that needs it, and take no lock that is held "
                    + "where the global is read."
            }
            let cycle = lock.cycle
            if let index = cycle.firstIndex(where: { $0.waitsFor == .dispatchQueue }),
                let place = facts.report.place(of: cycle[index])
            {
                // What the thread holds is what the one before it waits for.
                let held = lock.held(byOwner: index) ?? .futex
                return held == .dispatchQueue || ends.contains(held)
                    ? "Call async instead of sync in \(place): the queue's work waits until that code has ended."
                    : "Do not call sync in \(place) while it holds a lock that the queue's work waits for: "
                        + "let go of the lock first, or call async."
            }
            if let waiter = cycle.first(where: { $0.waitsFor.map(ends.contains) == true }),
                let place = facts.report.place(of: waiter)
            {
                let end = waiter.waitsFor == .threadJoin ? "the end of a thread" : "the one-time initialization"
                return "Do not wait for \(end) in \(place) while it holds what that needs: let go of it first."
            }
            let places = ways(to: Array(cycle), in: facts.report)
            let list = places.isEmpty ? "" : ": they are taken in \(places.prefix(3).joined(separator: ", "))"
            return "Take the locks of the circle in one order everywhere\(list)."
        },
    ]

    /// The place of each owner in which its way to the lock begins to be its own: several may wait in the wrapper of a lock.
    private static func ways(to owners: [StallReport.LockOwner], in report: StallReport) -> [String] {
        let stacks = owners.map { owner in
            owner.stack.map(report.provenFrames)?.filter { $0.isInApp && $0.isWritten && $0.function != nil } ?? []
        }
        return stacks.indices.reduce(into: []) { places, index in
            let (stack, others) = (stacks[index], stacks[..<index] + stacks[(index + 1)...])
            let shared = others.map { zip($0, stack).prefix { $0.function == $1.function }.count }.max() ?? 0
            let place = (shared < stack.count ? stack[shared] : stack.first)?.place
            if let place, !places.contains(place) { places.append(place) }
        }
    }

    /// The two threads of a deadlock over a task's status lock: one resumes the task, the other one cancels it.
    private static func resumption(in facts: AdviceFacts) -> (task: String, resuming: String, canceling: String)? {
        guard facts.cause.kind == .deadlock, let lock = facts.cause.lock, lock.isDeadlock, lock.owners.count == 2,
            lock.owners[1].thread.id == facts.report.loop.thread?.id, let other = lock.owners[0].stack,
            let here = facts.culprit, let there = facts.report.place(of: lock.owners[0])
        else { return nil }
        let resumesHere = lock.kind == .swiftTaskStatus
        guard let task = resumesHere ? lock.label : lock.owners[0].waitsForLabel,
            resumesHere || lock.owners[0].waitsFor == .swiftTaskStatus
        else { return nil }
        let otherFrames = facts.report.provenFrames(ofStack: other)
        func calls(_ functions: [String], _ frames: [StallReport.Frame]) -> Bool {
            frames.contains { frame in functions.contains { frame.symbol?.contains($0) == true } }
        }
        // The runtime's functions, and the library's `CheckedContinuation` and `UnsafeContinuation`.
        let resumes = ["swift_continuation_", "resumeTaskAfterContinuation", "$sScC6resume", "$sScc6resume"]
        guard calls(resumes, resumesHere ? facts.frames : otherFrames),
            calls(["swift_task_cancel"], resumesHere ? otherFrames : facts.frames)
        else { return nil }
        return resumesHere ? (task, here, there) : (task, there, here)
    }

    // MARK: - Locks

    static let locks = [
        // Silent for an owner of the same priority.
        AdviceRule(id: "inversion", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let lock = facts.cause.lock,
                let owner = lock.owners.first(where: { $0.priorityInversion != nil })
            else { return nil }
            let queue = owner.priorityInversion?.queue.map { "the queue \"\($0)\"" }
            let work =
                queue ?? facts.report.place(of: owner).map { "the queue or thread that runs \($0)" }
                ?? owner.thread.inWords
            let waiter = lock.kind == .dispatchQueue && lock.owners.first == owner ? facts.culprit : nil
            let other = waiter.map { "wait for its work in \($0)" } ?? "hold the lock there"
            return "Raise the QoS of \(work), or do not \(other): "
                + "its thread has a low priority and gets no CPU while others compute."
        },
        // Silent for an owner that computes, or whose function is not known.
        AdviceRule(id: "ownerWaits", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let lock = facts.cause.lock, mutexes.contains(lock.kind),
                let (owner, place) = facts.lastOwner, !owner.isRunning, !owner.isStarved, !owner.wasMostlyComputing,
                let call = owner.systemCall
            else { return nil }
            let work =
                sleepCalls.contains(call.name) ? "sleep" : call.name == "futex" ? "wait" : "call of \(call)"
            let start = "Move the \(work) in \(place) out of the section that holds the lock"
            return awaitsInput(call)
                ? "\(start); or the lock was never released: look for a return without unlock."
                : "\(start): copy what it needs under the lock, and let go of it first."
        },
        // Silent for an owner that sleeps.
        AdviceRule(id: "ownerComputes", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let lock = facts.cause.lock, mutexes.contains(lock.kind),
                let owner = facts.freeOwner, owner.isStarved || owner.computes
            else { return nil }
            let place = facts.lastOwner?.place
            let section = place.map { "in \($0)" } ?? "of \(owner.thread.inWords)"
            if owner.isStarved {
                let look = place == nil ? " Where it is, \(facts.again): \(facts.stacks)." : ""
                return "Make the section \(section) shorter, or give the process more CPU: "
                    + "\(facts.isWokenOften ? "it" : "with the lock held it") \(owner.doing).\(look)"
            }
            let time = owner.time.map { " for \($0.computingInWords)" } ?? ""
            if facts.isWokenOften {
                return "Make the section \(section) shorter, or take the lock less often there: "
                    + "its thread computed\(time), and may have let go of the lock in between."
            }
            if let time = owner.time, time.wasAlsoBlocked {
                return
                    "In \(place ?? owner.thread.inWords), compute and wait without the lock: with it held, the thread "
                    + "computed for \(time.computingInWords), and was blocked for \(time.blockedMilliseconds.whole) ms. "
                    + "Where it waits, \(facts.again): \(facts.stacks)."
            }
            return "Make the section \(section) shorter, which computed\(time) with the lock held: "
                + "compute first, and take the lock to store the result."
        },
        // Silent for a mutex that a thread holds.
        AdviceRule(id: "queue", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let lock = facts.cause.lock, lock.kind == .dispatchQueue,
                let place = facts.culprit
            else { return nil }
            let computing = facts.lastOwner.flatMap { $0.owner.computes ? $0.place : nil }
            let work = computing.map { "; its work in \($0) can be done in pieces" } ?? ""
            let back = facts.isInTask ? "resume a continuation (withCheckedContinuation)" : "come back in a completion"
            return "Do not wait for \(lock.kind.named(lock.label)) in \(place): call async, and \(back)\(work)."
        },
        // Silent for a mutex that an initializer holds.
        AdviceRule(id: "initializer", topic: "lock") { facts in
            guard facts.cause.kind == .lock, [.once, .dispatchOnce].contains(facts.cause.lock?.kind),
                let place = facts.culprit
            else { return nil }
            let stack = facts.cause.lock?.owners.first?.stack.map(facts.report.provenFrames)
            let work =
                stack?.initializer ?? facts.lastOwner.map { "the initializer in \($0.place)" } ?? "the initializer"
            return "Run \(work) early and off the loop, before \(place) needs its value."
        },
        // Silent for a thread that is waited for by a semaphore.
        AdviceRule(id: "join", topic: "lock") { facts in
            guard facts.cause.kind == .lock, facts.cause.lock?.kind == .threadJoin, let place = facts.culprit else {
                return nil
            }
            let joined = facts.cause.lock?.owners.first?.stack.map(facts.report.provenFrames) ?? []
            return joined.contains { $0.function == "RunLoop.run()" }
                ? "Do not wait for the thread in \(place): RunLoop.run() goes on as long as it has a source or a timer. "
                    + "Let its work call back, or use CFRunLoopRun, which CFRunLoopStop ends."
                : "Do not wait for the end of a thread in \(place): "
                    + "let the thread call back at its end\(facts.callBack)."
        },
        // Silent for the same wait on a thread that runs no task, and for a lock that a thread holds.
        AdviceRule(id: "semaphoreInTask", topic: "lock") { facts in
            guard facts.cause.kind == .lock, facts.isInTask, facts.waitsForGroup || facts.waitsForSignal,
                let place = facts.culprit
            else { return nil }
            let instead =
                facts.waitsForGroup
                ? "await a task group, or resume a continuation in notify(queue:)"
                : "await a continuation that the other side resumes (withCheckedContinuation)"
            let limit = facts.hasTimeLimit ? ", with a task that sleeps until the time limit beside it" : ""
            // The last thread leaves a group; a semaphore may have had no signal.
            let left = !facts.waitsForGroup && facts.cause.lock?.endedByTimeLimit == true
            return "Do not block the task in \(place): \(instead)\(limit)"
                + (left ? "; likely nothing signaled before that." : ".")
        },
        // Silent for a semaphore that stands for a group of one.
        AdviceRule(id: "group", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let place = facts.culprit else { return nil }
            if facts.calls(StallReport.operationWaits) {
                return
                    "Replace the wait in \(place) by addBarrierBlock or a completionBlock, which calls back"
                    + "\(facts.callBack). What the operations do, \(facts.again): \(facts.stacks)."
            }
            guard facts.waitsForGroup else { return nil }
            let limit = facts.hasTimeLimit ? ", and by a timer for its time limit" : ""
            let queue = facts.isOnMain ? "(queue: .main)" : "(queue:)"
            let awaited = facts.calls(StallReport.workItemWaits) ? "the work item's " : "group."
            return "Replace the wait in \(place) by \(awaited)notify\(queue), which calls what comes after it\(limit)."
        },
        // Silent for a semaphore in a task.
        AdviceRule(id: "signal", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let place = facts.culprit else { return nil }
            // Other processes share it as a rule, and these cannot call back.
            if facts.isOfSystemV {
                return "Do not wait for the semaphore in \(place): try it (IPC_NOWAIT) and come back later, "
                    + "or wait for it on a thread of its own."
            }
            guard facts.waitsForSignal else { return nil }
            if facts.cause.lock?.endedByTimeLimit == true {
                return
                    "Find the code that should signal: likely none did before the time limit of the wait in \(place). "
                    + "Let it call back\(facts.callBack), with a timer for the limit."
            }
            if facts.hasTimeLimit, facts.cause.lock?.endedByTimeLimit == nil {
                return "Do not wait with a time limit in \(place): let the thread that signals, if there is one, "
                    + "call back\(facts.callBack), and let a timer call what comes after the limit."
            }
            return "Do not wait in \(place): let the code that signals call back\(facts.callBack). "
                + "What other threads do, \(facts.again): \(facts.stacks)."
        },
        // Silent for a mutex.
        AdviceRule(id: "fileLock", topic: "lock") { facts in
            guard facts.cause.kind == .lock, facts.cause.lock?.kind == .file, let place = facts.culprit else {
                return nil
            }
            let holder = facts.cause.systemCall?.peers == nil ? " Who holds it, \(facts.again): lslocks." : ""
            // One that belongs to the process never waits for the process itself.
            let isOwn = facts.cause.systemCall?.peers?.contains { $0.isThisProcess == true } == true
            // The locks of flock(2) and those of fcntl(2) do not see each other.
            let flag = facts.cause.systemCall?.name == "flock" ? "LOCK_NB" : isOwn ? "F_OFD_SETLK" : "F_SETLK"
            if isOwn {
                return
                    "Do not wait in \(place): try the lock (\(flag)) and come back later, or let go of it sooner where this "
                    + "process has it. Where, \(facts.again): grep lock: /proc/\(facts.report.process.pid)/fdinfo/*."
            }
            return "Do not wait for the file lock in \(place): "
                + "try it (\(flag)) and come back later, or take it on a thread of its own.\(holder)"
        },
        // Silent for a write to the same pipe without the stream's lock.
        AdviceRule(id: "libraryLock", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let kind = facts.cause.lock?.kind, let place = facts.culprit,
                [.stdio, .dynamicLinker].contains(kind)
            else { return nil }
            let work = facts.lastOwner.map { " (it is in \($0.place))" } ?? ""
            if kind == .stdio, facts.cause.lock?.label == "stdin" {
                // fflush(3) of all streams takes the lock of each.
                return "Use stdin in one thread only, and flush single streams in \(place), not all (fflush(nil)): "
                    + "a reader of stdin keeps its lock until input comes\(work)."
            }
            let writes = ["write", "writev"].contains(facts.freeOwner?.systemCall?.name)
            let isSlow = writes && facts.freeOwner?.wasMostlyComputing == false
            let why = isSlow ? ": the output is read more slowly than it is written" : ""
            return kind == .stdio
                ? "Hand the lines of \(place) to the thread that prints them\(work)\(why)."
                : "Load and list libraries before the loop runs, or off it: \(place) waits until another thread "
                    + "has done so\(work)."
        },
        // Silent for an owner whose function is known and that computes or waits.
        AdviceRule(id: "held", topic: "lock") { facts in
            guard facts.cause.kind == .lock, let place = facts.culprit else { return nil }
            if let (task, handler) = canceling(in: facts) {
                return "Do not block in a cancellation handler, as in \(handler): "
                    + "cancel() keeps the status lock of task \(task) until it returns."
            }
            if let (_, there) = facts.lastOwner { return "Let go of the lock in \(there) before its slow part." }
            if let lock = facts.cause.lock, lock.kind == .pthreadReadWriteLock, lock.owners.isEmpty {
                return "Make the sections that read under the lock shorter that \(place) waits for. "
                    + "Where they are, \(facts.again): \(facts.stacks)."
            }
            if facts.cause.describesMost, let owner = facts.cause.lock?.owners.last, !owner.isStarved,
                !owner.wasMostlyComputing, let awaited = owner.waitsFor, let there = facts.report.place(of: owner)
            {
                return "Let go of the lock in \(there) before it waits for \(awaited.named(owner.waitsForLabel))."
            }
            // Not only a lock makes a thread wait in this way: also a result, such as that of a future.
            let kind = facts.cause.lock?.kind
            if kind == nil || kind == .futex, facts.freeOwner == nil {
                if facts.frames.awaitIterations {
                    return "Move the call in \(place) off \(facts.loop): it waits until other threads have done "
                        + "its last iterations (concurrentPerform, dispatch_apply)."
                }
                let instead =
                    facts.isInTask
                    ? "await it (withCheckedContinuation)" : "let its thread call back\(facts.callBack)"
                return "If \(place) waits for a result, \(instead); if for a lock, shorten its section. "
                    + "Which it is, \(facts.again): \(facts.stacks)."
            }
            return "Make the section of \(facts.freeOwner?.thread.inWords ?? "the thread") shorter that holds what "
                + "\(place) waits for. "
                + "Where it is, \(facts.again): \(facts.stacks)."
        },
    ]

    /// The task whose status lock is waited for, and the place in one of its cancellation handlers that blocks.
    private static func canceling(in facts: AdviceFacts) -> (task: String, handler: String)? {
        guard let lock = facts.cause.lock, lock.kind == .swiftTaskStatus, let task = lock.label,
            let owner = lock.owners.first, !owner.isRunning, let stack = owner.stack,
            facts.report.provenFrames(ofStack: stack).contains(where: {
                $0.symbol?.contains("swift_task_cancel") == true
            })
        else { return nil }
        return facts.report.place(of: owner).map { (task, $0) }
    }
}

extension StallReport.LockOwner {
    /// Whether computing is what it did, as far as the looks show: it may be met in a short call.
    fileprivate var computes: Bool { wasMostlyComputing || isRunning && !wasMostlyBlocked }
}

extension AdviceFacts {
    /// Whether the thread was woken each 10 ms or more often, as one is that loses the lock each time it is let go of.
    fileprivate var isWokenOften: Bool { Double(cause.voluntarySwitches) * 10 > cause.blockedMilliseconds }

    fileprivate var waitsForGroup: Bool { cause.lock?.kind == .dispatchGroup || calls(StallReport.groupWaits) }

    fileprivate var hasTimeLimit: Bool { cause.lock?.hasTimeLimit == true }

    /// Whether it waits for a semaphore of semop(2).
    fileprivate var isOfSystemV: Bool { [.systemSemaphore, .systemSemaphoreZero].contains(cause.lock?.kind) }

    /// Whether it waits for a semaphore of this process, a condition or the like, which no thread holds.
    fileprivate var waitsForSignal: Bool {
        let isSignaled = cause.lock.map { !$0.kind.hasOwner && !isOfSystemV }
        return isSignaled == true || calls(StallReport.semaphoreWaits)
    }
}
