import Dispatch
import Foundation
import Glibc
import StallWatch
import Synchronization

extension ExpectedReport {
    /// A stall of the main run loop that waits for a lock whose owner `does` something.
    static func owned(
        _ callout: StallReport.Callout, in function: String, _ lock: StallReport.LockKind, by owner: String,
        does: String
    ) -> Self {
        .main(callout, in: function, lock: lock, owner: owner, ownerDoes: does)
    }
}

extension Scenario {
    /// Stalls that wait for a lock.
    ///
    /// The report must name the kind of lock, its owner and the owner's activity. For a lock without an owner it must name
    /// none.
    static let lockScenarios: [Scenario] =
        heldScenarios + readWriteLockScenarios + onceScenarios + chainScenarios + inversionScenarios + unownedScenarios
        + deadlockScenarios

    /// Three scenarios with the lock that `make` returns: its owner computes, sleeps, and waits in write(2).
    private static func held(
        _ name: String, _ summary: String, in function: String, _ kind: StallReport.LockKind,
        _ make: @escaping @Sendable () -> any ThreadLock
    ) -> [Scenario] {
        HolderActivity.allCases.map { holding in
            .inMainLoop(
                "\(name)-\(holding.rawValue)", "\(summary), whose owner is \(holding.rawValue)",
                .main(.mainQueue, in: function, lock: kind, owner: "holder", ownerDoes: holding.activity),
                with: { make().held(by: "holder", holding, for: $0.stall) }
            ) { lock, _ in lock.pass() }
        }
    }

    /// An owner does something else than what it was doing when the monitor first looked, at half of the threshold.
    private static func changing(_ first: HolderActivity, then last: HolderActivity) -> Scenario {
        .inMainLoop(
            "owner-\(last.rawValue)-later", "the mutex's owner is \(first.rawValue), then \(last.rawValue)",
            .owned(.mainQueue, in: "PthreadLock.acquire()", .pthreadMutex, by: "holder", does: last.activity),
            with: { PthreadLock().held(by: "holder", [(first, $0.stall * 0.3), (last, $0.stall * 0.7)]) }
        ) { lock, _ in lock.pass() }
    }

    private static func mutex(
        _ name: String, _ summary: String, _ make: @escaping @Sendable () -> PthreadLock
    ) -> [Scenario] {
        held(name, summary, in: "PthreadLock.acquire()", .pthreadMutex, make)
    }

    /// The same with one of Foundation's locks, all of which are pthread mutexes.
    private static func foundation(
        _ name: String, _ summary: String, _ make: @escaping @Sendable () -> any NSLocking & Sendable
    ) -> [Scenario] {
        held(name, summary, in: "FoundationLock.acquire()", .pthreadMutex) { FoundationLock(lock: make()) }
    }

    // Swift 6.2 cannot type-check a sum of so many lists in time.
    private static let heldScenarios: [Scenario] = {
        let locks: [[Scenario]] = [
            mutex("mutex", "a mutex") { PthreadLock() },
            mutex("mutex-recursive", "a recursive mutex") { PthreadLock(type: Int32(PTHREAD_MUTEX_RECURSIVE)) },
            mutex("mutex-checking", "an error-checking mutex") { PthreadLock(type: Int32(PTHREAD_MUTEX_ERRORCHECK)) },
            mutex("mutex-adaptive", "an adaptive mutex") { PthreadLock(type: Int32(PTHREAD_MUTEX_ADAPTIVE_NP)) },
            mutex("mutex-robust", "a robust mutex") { PthreadLock(robust: true) },
            mutex("mutex-inheriting", "a mutex with priority inheritance") { PthreadLock(inheriting: true) },
            [changing(.sleeping, then: .computing), changing(.computing, then: .sleeping)],
            held("mutex-cxx", "a std::mutex of C++", in: "stalls_cxx_lock", .pthreadMutex) { CxxLock() },
            held("mutex-swift", "a Swift Mutex", in: "SwiftLock.acquire()", .swiftMutex) { SwiftLock() },
            foundation("nslock", "an NSLock") { NSLock() },
            foundation("nsrecursivelock", "an NSRecursiveLock") { NSRecursiveLock() },
            foundation("nscondition", "the lock of an NSCondition") { NSCondition() },
            held("rwlock-writer", "a read-write lock", in: "ReadWriteLock.acquire()", .pthreadReadWriteLock) {
                ReadWriteLock()
            },
        ]
        return locks.flatMap { $0 }
    }()

    private static let readWriteLockScenarios: [Scenario] = [
        .inMainLoop(
            "rwlock-reader", "a reader waits for a writer",
            .owned(
                .mainQueue, in: "ReadWriteLock.acquireForReading()", .pthreadReadWriteLock, by: "holder",
                does: "running"),
            with: { ReadWriteLock().held(by: "holder", .computing, for: $0.stall) }
        ) { lock, _ in
            lock.acquireForReading()
            lock.release()
        },
        .inMainLoop(
            "rwlock-readers", "a writer waits for a reader, which the lock does not name",
            .main(.timer, in: "ReadWriteLock.acquire()", lock: .pthreadReadWriteLock),
            with: { context in
                let lock = ReadWriteLock()
                NamedThread.start("reader") { ready in
                    lock.acquireForReading()
                    ready()
                    sleepTooLong(for: context.stall)
                    lock.release()
                }
                return lock
            }
        ) { lock, _ in lock.pass() },
    ]

    private static let onceScenarios: [Scenario] = [
        .stalling(
            "lazy-global", "a global whose initializer runs on another thread", times: 2,
            .main(
                .timer, in: "useTheGlobal()", lock: .once, owner: "initializer",
                ownerDoes: HolderActivity.sleeping.activity)
        ) { context in
            guard SlowGlobal.startInitializing(for: context.stall) else {
                throw NotAvailable(reason: "a process initializes a global only once")
            }
            return await MainLoop.timer { useTheGlobal() }
        },
        .inMainLoop(
            "dispatch-once", "dispatch_once on another thread",
            .owned(
                .source0, in: "stalls_once", .dispatchOnce, by: "initializer", does: HolderActivity.sleeping.activity),
            with: { SlowOnceInit(for: $0.stall) }
        ) { once, _ in once.run() },
    ]

    private static let chainScenarios: [Scenario] = [
        .inMainLoop(
            "lock-chain", "the owner of a lock waits for another lock",
            .owned(.timer, in: "SwiftLock.acquire()", .swiftMutex, by: "middle", does: "futex"),
            with: { context in
                let inner = PthreadLock().held(by: "last", .sleeping, for: context.stall)
                let outer = SwiftLock()
                NamedThread.start("middle") { ready in
                    outer.acquire()
                    ready()
                    inner.pass()
                    outer.release()
                }
                return outer
            }
        ) { outer, _ in outer.pass() },
        .inMainLoop(
            "busy-queue", "dispatch_sync onto a busy queue",
            .owned(
                .source0, in: "waitForTheQueue(_:)", .dispatchQueue, by: "queue-worker",
                does: HolderActivity.sleeping.activity
            ),
            with: { await DispatchQueue.busy(for: $0.stall) }
        ) { queue, _ in waitForTheQueue(queue) },
    ]

    private static let inversionScenarios: [Scenario] = [
        .inMainLoop(
            "priority-inversion", "a mutex, whose owner is a background worker on a busy CPU",
            .owned(
                .mainQueue, in: "PthreadLock.acquire()", .pthreadMutex, by: "background", does: ReportedStall.inverted),
            with: { try await BackgroundWorker.start(.computing, for: $0.stall) }
        ) { worker, _ in worker.compete { worker.lock.pass() } },
        .inMainLoop(
            "priority-inversion-queue", "dispatch_sync onto a background queue, whose worker is on a busy CPU",
            .owned(.source0, in: "waitForTheQueue(_:)", .dispatchQueue, by: "background", does: ReportedStall.inverted),
            with: { try await BackgroundWorker.start(.computing, for: $0.stall) }
        ) { worker, _ in worker.compete { waitForTheQueue(worker.queue) } },
        .inMainLoop(
            "background-owner", "a mutex, whose owner is a background worker that sleeps",
            .owned(
                .timer, in: "PthreadLock.acquire()", .pthreadMutex, by: "background",
                does: HolderActivity.sleeping.activity),
            with: { try await BackgroundWorker.start(.sleeping, for: $0.stall) }
        ) { worker, _ in worker.compete { worker.lock.pass() } },
    ]

    private static let unownedScenarios: [Scenario] = [
        .inMainLoop(
            "semaphore", "a POSIX semaphore, which has no owner",
            .main(.timer, in: "waitForThePOSIXSemaphore(for:)", lock: .semaphore), waitForThePOSIXSemaphore),
        .inMainLoop(
            "file-lock", "flock(2) on a locked file",
            .main(.timer, in: "waitForTheFileLock(_:)", lock: .file).waiting(for: .holder),
            with: { context in
                context.expectPeer(getpid())
                return HeldFileLock(for: context.stall, in: context.directory)
            }
        ) { lock, _ in waitForTheFileLock(lock) },
    ]

    private static func deadlock(
        _ callout: StallReport.Callout, in function: String, owner: String
    ) -> ExpectedReport {
        .main(
            callout, in: "PthreadLock.\(function)", cause: "deadlock", lock: .pthreadMutex, owner: owner,
            ownerDoes: "futex")
    }

    private static let deadlockScenarios: [Scenario] = [
        .inMainLoop(
            "deadlock-two", "two threads want each other's locks",
            deadlock(.timer, in: "acquire()", owner: "circle-1"), with: { LockCircle(of: 2, for: $0.stall) }
        ) { circle, _ in circle.close() },
        .inMainLoop(
            "deadlock-three", "three threads wait in a circle",
            deadlock(.mainQueue, in: "acquire()", owner: "circle-1"), with: { LockCircle(of: 3, for: $0.stall) }
        ) { circle, _ in circle.close() },
        .stalling(
            "deadlock-cancel",
            "a timer cancels a task, whose handler wants a lock, and the lock's owner resumes the task", times: 2,
            deadlock(.timer, in: "acquire(within:)", owner: "resumer")
        ) { context in
            let (lock, mayResume) = (PthreadLock(), DispatchSemaphore(value: 0))
            let task = await CanceledTask.start {
                mayResume.signal()
                if lock.acquire(within: context.stall) { lock.release() }
            }
            NamedThread.start("resumer") { ready in
                lock.acquire()
                ready()
                mayResume.wait()
                task.resume()
                lock.release()
            }
            return await MainLoop.timer { task.cancel() }
        },
        .quiet(
            "cured-resumeUnderLock", "the same, but the owner lets go of the lock before it resumes the task"
        ) { context in
            let (lock, mayResume) = (PthreadLock(), DispatchSemaphore(value: 0))
            let task = await CanceledTask.start {
                mayResume.signal()
                if lock.acquire(within: context.threshold * 2) { lock.release() }
            }
            NamedThread.start("resumer") { ready in
                lock.acquire()
                ready()
                mayResume.wait()
                lock.release()
                task.resume()
            }
            _ = await MainLoop.timer { task.cancel() }
        },
        .stalling(
            "deadlock-main-queue", "the owner of a lock calls sync on the main queue, whose thread wants the lock",
            times: 2, deadlock(.timer, in: "acquire(within:)", owner: "sync-caller")
        ) { context in
            let lock = PthreadLock()
            let mayGoOn = DispatchSemaphore(value: 0)
            NamedThread.start("sync-caller") { ready in
                lock.acquire()
                ready()
                mayGoOn.wait()
                DispatchQueue.main.sync {}
                lock.release()
            }
            return await MainLoop.timer {
                mayGoOn.signal()
                if lock.acquire(within: context.stall) { lock.release() }
            }
        },
        .inMainLoop(
            "deadlock-self", "a thread wants a lock that it owns",
            deadlock(.source0, in: "acquire(within:)", owner: "stallwatch-scen"), with: { _ in PthreadLock() }
        ) { lock, stall in
            lock.acquire()
            _ = lock.acquire(within: stall)
            lock.release()
        },
    ]
}

/// A task that awaits a continuation, with a cancellation handler.
private final class CanceledTask: Sendable {
    private let continuation = Mutex<CheckedContinuation<Void, Never>?>(nil)
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Returns the task once it waits; `handler` runs on the thread that cancels it.
    static func start(_ handler: @escaping @Sendable () -> Void) async -> CanceledTask {
        let canceled = CanceledTask()
        let task = Task.detached(name: "canceled") {
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in canceled.continuation.withLock { $0 = continuation } }
            } onCancel: {
                handler()
            }
        }
        canceled.task.withLock { $0 = task }
        while canceled.continuation.withLock({ $0 == nil }) { await pause(.milliseconds(5)) }
        // The task has stored its continuation, and needs a moment to wait for it.
        await pause(.milliseconds(20))
        return canceled
    }

    func cancel() { task.withLock { $0 }?.cancel() }

    func resume() { continuation.withLock { $0.take() }?.resume() }
}
