import ScenarioKit
import Dispatch
import Foundation
import Glibc
import StallWatch

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
        Holding.allCases.map { holding in
            .stalling(
                "\(name)-\(holding.rawValue)", "\(summary), whose owner is \(holding.rawValue)", times: 2,
                .main(.mainQueue, in: function, lock: kind, owner: "holder", ownerDoes: holding.activity)
            ) { context in
                let lock = make()
                lock.hold(by: "holder", holding, for: context.stall)
                return await MainLoop.mainQueue { lock.pass() }
            }
        }
    }

    /// An owner does something else than what it was doing when the monitor first looked, at half of the threshold.
    private static func changing(_ first: Holding, then last: Holding) -> Scenario {
        .stalling(
            "owner-\(last.rawValue)-later", "the mutex's owner is \(first.rawValue), then \(last.rawValue)", times: 2,
            .main(
                .mainQueue, in: "PthreadLock.acquire()", lock: .pthreadMutex, owner: "holder", ownerDoes: last.activity)
        ) { context in
            let lock = PthreadLock()
            lock.hold(by: "holder", [(first, context.stall * 0.3), (last, context.stall * 0.7)])
            return await MainLoop.mainQueue { lock.pass() }
        }
    }

    /// The same with a kind of pthread mutex.
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
            held("mutex-cxx", "a std::mutex of C++", in: "demo_cxx_lock", .pthreadMutex) { CxxLock() },
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
        .stalling(
            "rwlock-reader", "a reader waits for a writer", times: 2,
            .main(
                .mainQueue, in: "ReadWriteLock.acquireForReading()", lock: .pthreadReadWriteLock, owner: "holder",
                ownerDoes: "running"
            )
        ) { context in
            let lock = ReadWriteLock()
            lock.hold(by: "holder", .computing, for: context.stall)
            return await MainLoop.mainQueue {
                lock.acquireForReading()
                lock.release()
            }
        },
        .stalling(
            "rwlock-readers", "a writer waits for a reader, which the lock does not name", times: 2,
            .main(.timer, in: "ReadWriteLock.acquire()", lock: .pthreadReadWriteLock)
        ) { context in
            let lock = ReadWriteLock()
            NamedThread.start("reader") { ready in
                lock.acquireForReading()
                ready()
                sleepTooLong(for: context.stall)
                lock.release()
            }
            return await MainLoop.timer { lock.pass() }
        },
    ]

    private static let onceScenarios: [Scenario] = [
        .stalling(
            "lazy-global", "a global whose initializer runs on another thread", times: 2,
            .main(
                .timer, in: "useTheGlobal()", lock: .once, owner: "initializer",
                ownerDoes: Holding.sleeping.activity
            )
        ) { context in
            guard SlowGlobal.startInitializing(for: context.stall) else {
                throw NotAvailable(reason: "a process initializes a global only once")
            }
            return await MainLoop.timer { useTheGlobal() }
        },
        .stalling(
            "dispatch-once", "dispatch_once on another thread", times: 2,
            .main(
                .source0, in: "demo_once", lock: .dispatchOnce, owner: "initializer",
                ownerDoes: Holding.sleeping.activity
            )
        ) { context in
            let once = SlowOnceInit(for: context.stall)
            return await MainLoop.source0 { once.run() }
        },
    ]

    private static let chainScenarios: [Scenario] = [
        .stalling(
            "lock-chain", "the owner of a lock waits for another lock", times: 2,
            .main(.timer, in: "SwiftLock.acquire()", lock: .swiftMutex, owner: "middle", ownerDoes: "futex")
        ) { context in
            let inner = PthreadLock()
            let outer = SwiftLock()
            inner.hold(by: "last", .sleeping, for: context.stall)
            NamedThread.start("middle") { ready in
                outer.acquire()
                ready()
                inner.pass()
                outer.release()
            }
            return await MainLoop.timer { outer.pass() }
        },
        .stalling(
            "busy-queue", "dispatch_sync onto a busy queue", times: 2,
            .main(
                .source0, in: "waitForTheQueue(_:)", lock: .dispatchQueue, owner: "queue-worker",
                ownerDoes: Holding.sleeping.activity
            )
        ) { context in
            let queue = await DispatchQueue.busy(for: context.stall)
            return await MainLoop.source0 { waitForTheQueue(queue) }
        },
    ]

    private static let inversionScenarios: [Scenario] = [
        .stalling(
            "priority-inversion", "a mutex, whose owner is a background worker on a busy CPU", times: 2,
            .main(
                .mainQueue, in: "PthreadLock.acquire()", lock: .pthreadMutex, owner: "background",
                ownerDoes: ReportedStall.inverted)
        ) { context in
            let lock = PthreadLock()
            let worker = try await BackgroundWorker.start(for: context.stall) {
                lock.acquire()
            } last: {
                lock.release()
            }
            return await MainLoop.mainQueue { worker.compete { lock.pass() } }
        },
        .stalling(
            "priority-inversion-queue", "dispatch_sync onto a background queue, whose worker is on a busy CPU",
            times: 2,
            .main(
                .source0, in: "waitForTheQueue(_:)", lock: .dispatchQueue, owner: "background",
                ownerDoes: ReportedStall.inverted)
        ) { context in
            let worker = try await BackgroundWorker.start(for: context.stall) {
            } last: {
            }
            return await MainLoop.source0 { worker.compete { waitForTheQueue(worker.queue) } }
        },
        .stalling(
            "background-owner", "a mutex, whose owner is a background worker that sleeps", times: 2,
            .main(
                .timer, in: "PthreadLock.acquire()", lock: .pthreadMutex, owner: "background",
                ownerDoes: Holding.sleeping.activity)
        ) { context in
            let lock = PthreadLock()
            let worker = try await BackgroundWorker.start(.sleeping, for: context.stall) {
                lock.acquire()
            } last: {
                lock.release()
            }
            return await MainLoop.timer { worker.compete { lock.pass() } }
        },
    ]

    private static let unownedScenarios: [Scenario] = [
        .inMainLoop(
            "semaphore", "a POSIX semaphore, which has no owner",
            .main(.timer, in: "waitForThePOSIXSemaphore(for:)", lock: .semaphore), waitForThePOSIXSemaphore),
        .stalling(
            "file-lock", "flock(2) on a locked file", times: 2,
            .main(.timer, in: "waitForTheFileLock(_:)", lock: .file).waiting(for: .holder)
        ) { context in
            context.expectPeer(getpid())
            let lock = HeldFileLock(for: context.stall)
            return await MainLoop.timer { waitForTheFileLock(lock) }
        },
    ]

    private static func deadlock(
        _ callout: StallReport.Callout, in function: String, owner: String
    ) -> ExpectedReport {
        .main(
            callout, in: "PthreadLock.\(function)", cause: "deadlock", lock: .pthreadMutex, owner: owner,
            ownerDoes: "futex")
    }

    private static let deadlockScenarios: [Scenario] = [
        .stalling(
            "deadlock-two", "two threads want each other's locks", times: 2,
            deadlock(.timer, in: "acquire()", owner: "circle-1")
        ) { context in
            let circle = LockCircle(of: 2, for: context.stall)
            return await MainLoop.timer { circle.close() }
        },
        .stalling(
            "deadlock-three", "three threads wait in a circle", times: 2,
            deadlock(.mainQueue, in: "acquire()", owner: "circle-1")
        ) { context in
            let circle = LockCircle(of: 3, for: context.stall)
            return await MainLoop.mainQueue { circle.close() }
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
        .stalling(
            "deadlock-self", "a thread wants a lock that it owns", times: 2,
            deadlock(.source0, in: "acquire(within:)", owner: "stallwatch-demo")
        ) { context in
            let lock = PthreadLock()
            return await MainLoop.source0 {
                lock.acquire()
                _ = lock.acquire(within: context.stall)
                lock.release()
            }
        },
    ]
}
