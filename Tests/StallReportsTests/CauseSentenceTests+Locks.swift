import TestSupport
import Testing

@testable import StallReports

// Locks, their owners and deadlocks.

extension CauseSentenceTests {
    @Test func `a lock is described with its owner and the owner's state`() {
        #expect(
            sentence(.lock, mutex([owner(2, "saver", isRunning: true)]))
                == "Blocked for 470 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2 \"saver\", which is running."
        )
        let chain = StallReport.Lock(
            kind: .dispatchQueue, label: "io", isDeadlock: false,
            owners: [owner(2, nil, waitsFor: .pthreadMutex), owner(3, "last")])
        #expect(
            sentence(.lock, chain)
                == "Blocked for 470 of 500 ms in a call of libdispatch; the dispatch queue \"io\" is held by thread 2, "
                + "which waits for the mutex held by thread 3 \"last\", which is waiting."
        )
    }

    @Test func `an owner that waited for a CPU is not said to run`() {
        var starved = owner(2, "saver", isRunning: true)
        starved.time = .init(observedMilliseconds: 400, onCPUMilliseconds: 9.6, runQueueMilliseconds: 390.4)
        let start = "Blocked for 470 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2 \"saver\", which "
        #expect(sentence(.lock, mutex([starved])) == start + "waited for a CPU for 390 of 400 ms.")
        var blocked = starved
        blocked.time = StallReport.OwnerTime(observedMilliseconds: 400, onCPUMilliseconds: 2, runQueueMilliseconds: 45)
        #expect(sentence(.lock, mutex([blocked])) == start + "was blocked for 353 of 400 ms.")
        var seen = starved
        seen.time = StallReport.OwnerTime(observedMilliseconds: 223, onCPUMilliseconds: 133, runQueueMilliseconds: 88)
        #expect(
            sentence(.lock, mutex([seen]))
                == start + "was on a CPU for 133 and waited for one for 88 of the 223 ms for which it was seen.")
        starved.priorityInversion = .init(nice: 10, waiterNice: 0)
        #expect(
            sentence(.lock, mutex([starved]))
                == start + "waited for a CPU for 390 of 400 ms (priority inversion: its nice value is 10, that of the "
                + "stalled thread 0)."
        )
        starved.time = .init(observedMilliseconds: 400, onCPUMilliseconds: 300, runQueueMilliseconds: 100)
        #expect(sentence(.lock, mutex([starved])) == start + "is running.")
    }

    @Test func `a worker of a global queue is not named by the end of the queue's label`() {
        for name in ["oot.default-qos", "-qos.overcommit"] {
            #expect(StallReport.ThreadDescription(id: 4, name: name).inWords == "thread 4 of a dispatch queue")
        }
        for name in ["my-qos", "render-work-qos"] {
            #expect(StallReport.ThreadDescription(id: 4, name: name).inWords == "thread 4 \"\(name)\"")
        }
        #expect(StallReport.ThreadDescription(id: 4).inWords == "thread 4")
    }

    @Test func `a thread that runs tasks is one of the task pool`() throws {
        var report = try StallReport.literal()
        func words(_ symbols: [String]) -> String {
            report.frames = symbols.map { name in
                .init(offset: "0x1", function: name, symbol: name, isInApp: false, kind: .code)
            }
            report.stacks = [Array(symbols.indices)]
            return report.name(of: .init(id: 4, name: "oot.default-qos"), stack: 0)
        }
        let outer = ["_dispatch_worker_thread", "start_thread"]
        #expect(words(["swift_job_run", "_dispatch_continuation_pop"] + outer) == "thread 4 of the task pool")
        // A serial queue that is an actor's executor, and a job that the app runs on a queue.
        let others = [["_dispatch_continuation_pop", "_dispatch_lane_serial_drain"], ["runSynchronously(on:)"]]
        for other in others {
            #expect(words(["swift_job_run"] + other + outer) == "thread 4 of a dispatch queue")
        }
        #expect(report.name(of: .init(id: 4, name: "worker"), stack: 0) == "thread 4 \"worker\"")
    }

    @Test func `an owner that computed is not said to wait in a short call`() {
        var computing = owner(2, "saver")
        computing.systemCall = .init(number: 1, name: "write", target: "pipe:[5]")
        computing.systemCall?.peers = [.init(role: .reader, pid: 8)]
        computing.time = .init(observedMilliseconds: 452, onCPUMilliseconds: 400, runQueueMilliseconds: 2)
        let start = "Blocked for 470 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2 \"saver\", which "
        #expect(sentence(.lock, mutex([computing])) == start + "was on a CPU for 400 of 452 ms.")
        computing.waitsFor = .dispatchSemaphore
        #expect(sentence(.lock, mutex([computing])) == start + "was on a CPU for 400 of 452 ms.")
        computing.time?.onCPUMilliseconds = 200
        #expect(sentence(.lock, mutex([computing])).hasPrefix(start + "waits for a semaphore; its reading end"))
    }

    @Test func `a group says how often it was entered`() {
        var group = StallReport.Lock(
            kind: .dispatchGroup, function: "dispatch_group_wait", isDeadlock: false, owners: [])
        group.entries = 3
        #expect(
            sentence(.lock, group)
                == "Blocked for 470 of 500 ms in dispatch_group_wait, until the last thread leaves the dispatch group: "
                + "3 calls of enter() or async(group:) were still open.")
    }

    @Test func `an initialization is described as run by its owner`() {
        let once = StallReport.Lock(
            kind: .once, function: "swift_once", isDeadlock: false, owners: [owner(2, "init", isRunning: true)])
        #expect(
            sentence(.lock, once)
                == "Blocked for 470 of 500 ms in swift_once; the one-time initialization is run by thread 2 \"init\", "
                + "which is running."
        )
    }

    @Test func aMissingOrUnknownOwnerIsStated() {
        var semaphore = StallReport.Lock(
            kind: .dispatchSemaphore, function: "dispatch_semaphore_wait", isDeadlock: false, owners: [],
            reason: "this kind has no owner")
        #expect(
            sentence(.lock, semaphore)
                == "Blocked for 470 of 500 ms in dispatch_semaphore_wait, until a thread signals the semaphore: "
                + "it does not record which thread that will be."
        )
        semaphore.address = "0x7ffc10"
        #expect(sentence(.lock, semaphore).contains("signals the semaphore at 0x7ffc10: it"))
        // Perhaps no thread will.
        semaphore.hasTimeLimit = true
        #expect(
            sentence(.lock, semaphore).hasSuffix(
                "signals the semaphore at 0x7ffc10, or until a time limit ends: it does not record which thread that would be."
            ))
        semaphore.endedByTimeLimit = true
        #expect(sentence(.lock, semaphore).contains("a time limit, by which the wait likely ended: it does"))
        semaphore.endedByTimeLimit = false
        #expect(sentence(.lock, semaphore).contains("a time limit, before which the wait ended: it does"))
        #expect(
            sentence(.lock, mutex([], reason: "it was just released"))
                == "Blocked for 470 of 500 ms in pthread_mutex_lock, for the mutex; its owner is not known: it was just released."
        )
    }

    @Test func aDeadlockIsDescribedLockByLock() {
        let circle = mutex(
            [owner(2, "saver", waitsFor: .dispatchQueue, label: "main"), owner(1, "app")], isDeadlock: true)
        #expect(
            sentence(.deadlock, circle)
                == "Waits in a cycle for the mutex held by thread 2 \"saver\", which waits for the dispatch queue \"main\" "
                + "held by thread 1 \"app\"."
        )
        let alone = mutex([owner(1, "app", waitsFor: .pthreadMutex)], isDeadlock: true)
        #expect(sentence(.deadlock, alone) == "Waits for the mutex, which it holds itself.")
    }

    @Test func `no thread is held, and an initialization is run`() {
        let (joins, reads) = (owner(2, "a", waitsFor: .threadJoin), owner(3, "b", waitsFor: .dispatchOnce))
        let (end, rest) = (owner(1, "app"), "waits for the end of thread 3 \"b\", which waits for the one-time ")
        #expect(
            sentence(.deadlock, mutex([joins, reads, end], isDeadlock: true))
                == "Waits in a cycle for the mutex held by thread 2 \"a\", which \(rest)initialization run by "
                + "thread 1 \"app\".")
        #expect(
            sentence(.lock, mutex([joins, reads, end])).hasSuffix(
                "which \(rest)initialization run by thread 1 \"app\", which is waiting."))
        let joined = StallReport.Lock(
            kind: .threadJoin, isDeadlock: true, owners: [owner(2, "a", waitsFor: .pthreadMutex), end])
        #expect(
            sentence(.deadlock, joined)
                == "Waits in a cycle for the end of thread 2 \"a\", which waits for the mutex held by "
                + "thread 1 \"app\".")
        #expect(sentence(.deadlock, mutex([], isDeadlock: true)) == "Waits for the mutex.")
    }

    @Test func `a thread outside of a cycle is not said to wait in it`() {
        func sentence(_ owners: StallReport.LockOwner...) -> String {
            self.sentence(.deadlock, mutex(owners, isDeadlock: true))
        }
        let (one, other) = (owner(2, "a", waitsFor: .pthreadMutex), owner(3, "b", waitsFor: .pthreadMutex))
        let cycle =
            "thread 2 \"a\", which is in a deadlock: it waits for the mutex held by thread 3 \"b\", which waits for "
            + "the mutex held by thread 2 \"a\"."
        #expect(sentence(one, other, one) == "Waits for the mutex held by \(cycle)")
        #expect(
            sentence(owner(4, "c", waitsFor: .dispatchQueue, label: "io"), one, other, one)
                == "Waits for the mutex held by thread 4 \"c\", which waits for the dispatch queue \"io\" held by "
                + cycle)
        #expect(
            sentence(one, one)
                == "Waits for the mutex held by thread 2 \"a\", which is in a deadlock: it waits for the mutex, which "
                + "it holds itself.")
    }
}
