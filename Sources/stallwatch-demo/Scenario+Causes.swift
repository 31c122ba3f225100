import Dispatch
import Foundation
import Glibc
import StallWatch

extension Scenario {
    /// Stalls of every cause.
    ///
    /// The report must name it, and the thread that holds what is waited for.
    static let causeScenarios =
        computingScenarios + lockScenarios + deadlockScenarios + blockingScenarios
        + [throttled]

    private static let computingScenarios: [Scenario] = [
        .stalling(
            "cpu-kernel-copy", "the kernel copies memory", times: 2,
            .main(.timer, in: "copyInTheKernel(for:)", cause: "cpu")
        ) { stage in
            await MainLoop.timer { copyInTheKernel(for: stage.stall) }
        },
        .stalling(
            "cpu-random", "the kernel makes random bytes", times: 2,
            .main(.source0, in: "askForRandomBytes(for:)", cause: "cpu")
        ) { stage in
            await MainLoop.source0 { askForRandomBytes(for: stage.stall) }
        },
        .stalling(
            "half-and-half", "a block computes for half of the time and sleeps", times: 3,
            .main(.mainQueue, in: "computeAndSleep(for:)", cause: "cpu")
        ) { stage in
            await MainLoop.mainQueue { computeAndSleep(for: stage.stall) }
        },
        .stalling(
            "starved", "nine threads compute on the CPU that the main thread is bound to", times: 3,
            .main(.timer, in: "spinTheCPU(for:)", cause: "starved")
        ) { stage in
            let competitors = Competitors(count: 9)
            return await MainLoop.timer { competitors.run { spinTheCPU(for: stage.stall) } }
        },
        .stalling(
            "paging", "a block touches the pages of a file that is not in memory", times: 2,
            .main(.performedBlock, in: "touchThePages(of:for:)", cause: "paging")
        ) { stage in
            let file = ScratchFile(megabytes: 256)
            defer { file.close() }
            return await MainLoop.performedBlock { touchThePages(of: file, for: stage.stall) }
        },
    ]

    private static let throttled = Scenario.stalling(
        "throttled", "the CPU quota of the main thread's cgroup is used up", times: 2,
        .main(.timer, in: "spinTheCPU(for:)", cause: "throttled")
    ) { stage in
        guard let group = QuotaGroup(share: 0.2) else {
            throw NotAvailable(reason: "no CPU cgroup of version 1 can be made here")
        }
        // In turns of their own: going from group to group takes some 20 ms.
        _ = await MainLoop.timer { group.enter() }
        let duration = await MainLoop.timer { spinTheCPU(for: stage.stall) }
        _ = await MainLoop.timer { group.leave() }
        return duration
    }

    /// A lock that a thread holds while it does something; `make` gives the lock.
    private static func held(
        _ name: String, _ summary: String, in function: String, _ holding: Holding,
        _ make: @escaping @Sendable () -> any ThreadLock
    ) -> Scenario {
        .stalling(
            name, summary, times: 2, .main(.mainQueue, in: function, cause: "lock", owner: "holder")
        ) { stage in
            let lock = make()
            lock.hold(by: "holder", holding, for: stage.stall)
            return await MainLoop.mainQueue {
                lock.acquire()
                lock.release()
            }
        }
    }

    private static let lockScenarios: [Scenario] = [
        held("mutex-recursive", "a recursive mutex", in: "PthreadLock.acquire()", .sleeping) {
            PthreadLock(type: Int32(PTHREAD_MUTEX_RECURSIVE))
        },
        held("mutex-checking", "an error-checking mutex", in: "PthreadLock.acquire()", .writing) {
            PthreadLock(type: Int32(PTHREAD_MUTEX_ERRORCHECK))
        },
        held("mutex-adaptive", "an adaptive mutex", in: "PthreadLock.acquire()", .computing) {
            PthreadLock(type: Int32(PTHREAD_MUTEX_ADAPTIVE_NP))
        },
        held("mutex-robust", "a robust mutex", in: "PthreadLock.acquire()", .sleeping) { PthreadLock(robust: true) },
        held("mutex-inheriting", "a mutex with priority inheritance", in: "PthreadLock.acquire()", .writing) {
            PthreadLock(inheriting: true)
        },
        held("mutex-swift", "a Swift Mutex", in: "SwiftLock.acquire()", .computing) { SwiftLock() },
        held("nslock", "an NSLock", in: "FoundationLock.acquire()", .sleeping) { FoundationLock(lock: NSLock()) },
        held("nsrecursivelock", "an NSRecursiveLock", in: "FoundationLock.acquire()", .writing) {
            FoundationLock(lock: NSRecursiveLock())
        },
        held("nscondition", "an NSCondition's lock", in: "FoundationLock.acquire()", .computing) {
            FoundationLock(lock: NSCondition())
        },
        held("rwlock-writer", "two writers of a read-write lock", in: "ReadWriteLock.acquire()", .sleeping) {
            ReadWriteLock()
        },
        .stalling(
            "rwlock-reader", "a reader waits for a writer", times: 2,
            .main(.mainQueue, in: "ReadWriteLock.acquireForReading()", cause: "lock", owner: "holder")
        ) { stage in
            let lock = ReadWriteLock()
            lock.hold(by: "holder", .computing, for: stage.stall)
            return await MainLoop.mainQueue {
                lock.acquireForReading()
                lock.release()
            }
        },
        .stalling(
            "lock-chain", "the holder of a lock waits for another one's", times: 2,
            .main(.timer, in: "SwiftLock.acquire()", cause: "lock", owner: "middle")
        ) { stage in
            let inner = PthreadLock()
            let outer = SwiftLock()
            inner.hold(by: "last", .sleeping, for: stage.stall)
            NamedThread.start("middle") { ready in
                outer.acquire()
                ready()
                inner.acquire()
                inner.release()
                outer.release()
            }
            return await MainLoop.timer {
                outer.acquire()
                outer.release()
            }
        },
        .stalling(
            "busy-queue", "dispatch_sync onto a busy queue", times: 2,
            .main(.source0, in: "waitForTheQueue(_:)", cause: "lock", owner: "queue-worker")
        ) { stage in
            let queue = DispatchQueue(label: "demo.busy")
            await withCheckedContinuation { continuation in
                queue.async {
                    NamedThread.nameThisThread("queue-worker")
                    continuation.resume()
                    sleepTooLong(for: stage.stall)
                }
            }
            return await MainLoop.source0 { waitForTheQueue(queue) }
        },
        .stalling(
            "file-lock", "flock(2) on a file that is locked", times: 2,
            .main(.timer, in: "waitForTheFileLock(_:)", cause: "lock")
        ) { stage in
            let lock = HeldFileLock(for: stage.stall)
            return await MainLoop.timer { waitForTheFileLock(lock) }
        },
    ]

    private static let deadlockScenarios: [Scenario] = [
        .stalling(
            "deadlock-two", "two threads want each other's locks", times: 2,
            .main(.timer, in: "PthreadLock.acquire()", cause: "deadlock", owner: "circle-1")
        ) { stage in
            let circle = LockCircle(of: 2, for: stage.stall)
            return await MainLoop.timer { circle.close() }
        },
        .stalling(
            "deadlock-three", "three threads wait in a circle", times: 2,
            .main(.mainQueue, in: "PthreadLock.acquire()", cause: "deadlock", owner: "circle-1")
        ) { stage in
            let circle = LockCircle(of: 3, for: stage.stall)
            return await MainLoop.mainQueue { circle.close() }
        },
        .stalling(
            "deadlock-self", "a thread wants a lock that it has", times: 2,
            .main(.source0, in: "PthreadLock.acquire(within:)", cause: "deadlock", owner: "stallwatch-demo")
        ) { stage in
            let lock = PthreadLock()
            return await MainLoop.source0 {
                lock.acquire()
                _ = lock.acquire(within: stage.stall)
                lock.release()
            }
        },
    ]

    private static let blockingScenarios: [Scenario] = [
        .stalling(
            "usleep", "usleep(3)", times: 2, .main(.timer, in: "sleepInMicroseconds(for:)", cause: "sleep")
        ) { stage in
            await MainLoop.timer { sleepInMicroseconds(for: stage.stall) }
        },
        .stalling(
            "fsync", "fsync(2) of a large file", times: 2, .main(.mainQueue, in: "synchronize(_:for:)", cause: "io")
        ) { stage in
            let file = ScratchFile(megabytes: 64)
            // The file goes away here: to give its blocks back takes time that is not to be the main thread's.
            defer { file.close() }
            return await MainLoop.mainQueue { synchronize(file, for: stage.stall) }
        },
        .stalling(
            "fifo", "read(2) of an empty FIFO", times: 2, .main(.timer, in: "readTheFIFO(_:)", cause: "io")
        ) { stage in
            let fifo = EmptyFIFO(for: stage.stall)
            return await MainLoop.timer { readTheFIFO(fifo) }
        },
        .stalling(
            "connect", "connect(2) to a socket that takes no more connections", times: 2,
            .main(.source0, in: "connectTo(_:)", cause: "io")
        ) { stage in
            let server = BusyServer(for: stage.stall)
            return await MainLoop.source0 { connectTo(server) }
        },
        .stalling(
            "silent-server", "poll(2) for an answer of a UDP server that is silent", times: 2,
            .main(.performedBlock, in: "askTheNameServer(_:for:)", cause: "io")
        ) { stage in
            let server = SilentServer()
            return await MainLoop.performedBlock { askTheNameServer(server, for: stage.stall) }
        },
    ]
}
