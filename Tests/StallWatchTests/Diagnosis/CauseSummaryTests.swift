import Testing

@testable import StallWatch

@Suite struct CauseSummaryTests {
    private func owner(_ thread: Int32, _ name: String?, waitsFor: AwaitedLock? = nil, isRunning: Bool = false)
        -> LockOwnership.Owner
    {
        LockOwnership.Owner(
            thread: .init(id: thread, name: name), stack: .failure(CaptureError(description: "")), waitsFor: waitsFor,
            isRunning: isRunning
        )
    }

    private let mutex = AwaitedLock(
        kind: .pthreadMutex, address: 8, function: "pthread_mutex_lock", ownership: .thread(2))

    private func summary(_ kind: Cause.Kind, _ wait: LockOwnership? = nil, function: String? = nil) -> String {
        let evidence = Evidence(
            split: TimeSplit(onCPU: 10_000_000, runQueue: 20_400_000, blocked: 469_600_000, uncertainty: 0), start: 0,
            majorFaults: 7, pagedFile: "/data/pages"
        )
        let observation = Observation(time: 1, activity: .running, function: function, lock: wait)
        return Cause.summary(.init(kind: kind, confidence: .certain, observation: observation), evidence)
    }

    @Test func aLockIsSaidWithItsOwnerAndWhatThatDoes() {
        #expect(
            summary(.lock, LockOwnership(site: mutex, owners: [owner(2, "saver", isRunning: true)]))
                == "Blocked for 470 of 500 ms in pthread_mutex_lock; the mutex is held by thread 2 \"saver\", which is running."
        )
        let queue = AwaitedLock(
            kind: .dispatchQueue, address: 16, function: "dispatch_sync", label: "io", ownership: .thread(2))
        let chain = LockOwnership(site: queue, owners: [owner(2, nil, waitsFor: mutex), owner(3, "last")])
        #expect(
            summary(.lock, chain)
                == "Blocked for 470 of 500 ms in dispatch_sync; the dispatch queue \"io\" is held by thread 2, "
                + "which waits for the mutex held by thread 3 \"last\", which is waiting."
        )
    }

    @Test func aOneTimeInitializationIsRunByItsOwner() {
        let once = AwaitedLock(kind: .once, address: 8, function: "swift_once", ownership: .thread(2))
        #expect(
            summary(.lock, LockOwnership(site: once, owners: [owner(2, "init", isRunning: true)]))
                == "Blocked for 470 of 500 ms in swift_once; the one-time initialization is run by thread 2 \"init\", "
                + "which is running."
        )
    }

    @Test func whatHasNoOwnerOrNoneThatIsKnownSaysSo() {
        var site = AwaitedLock(
            kind: .dispatchSemaphore, address: 8, function: "dispatch_semaphore_wait", ownership: .none)
        #expect(
            summary(.lock, LockOwnership(site: site))
                == "Blocked for 470 of 500 ms in dispatch_semaphore_wait: a semaphore has no owner, any thread may end the wait."
        )
        site = mutex
        site.ownership = .unknown("it was just let go")
        #expect(
            summary(.lock, LockOwnership(site: site))
                == "Blocked for 470 of 500 ms in pthread_mutex_lock, for the mutex; its owner is not known: it was just let go."
        )
    }

    @Test func aDeadlockIsSaidLockByLock() {
        let queue = AwaitedLock(kind: .dispatchQueue, address: 16, label: "main", ownership: .thread(1))
        let circle = LockOwnership(
            site: mutex, owners: [owner(2, "saver", waitsFor: queue), owner(1, "app")], isDeadlock: true)
        #expect(
            summary(.deadlock, circle)
                == "Deadlock: waits for the mutex held by thread 2 \"saver\", which waits for the dispatch queue \"main\" "
                + "held by thread 1 \"app\"."
        )
        let alone = LockOwnership(site: mutex, owners: [owner(1, "app", waitsFor: mutex)], isDeadlock: true)
        #expect(summary(.deadlock, alone) == "Deadlock: thread 1 \"app\" waits for the mutex that it holds itself.")
    }

    @Test func theRestIsSaidWithItsNumbers() {
        #expect(summary(.cpu) == "On CPU for 10 of 500 ms.")
        #expect(summary(.cpuContention) == "Ready to run but without a CPU for 20 of 500 ms: other threads had them.")
        #expect(summary(.io, function: "fsync") == "Blocked for 470 of 500 ms in fsync.")
        #expect(summary(.syscall) == "Blocked for 470 of 500 ms in a system call.")
        #expect(
            summary(.paging)
                == "Waited for pages of memory, for 470 of 500 ms: 7 page faults went to a disk, the last of them for /data/pages."
        )
    }
}
