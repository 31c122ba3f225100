import LinuxSupport

/// Tells which lock a thread waits for from its system call, the functions that it is in, and the lock's own memory.
///
/// A wrong owner is worse than none: an owner is named only when everything that is known of the lock's layout agrees and
/// the thread lives. Layouts are those of glibc (bits/struct_mutex.h, bits/struct_rwlock.h: the same on both 64-bit
/// architectures), of the kernel's futex interface (futex(2)), and of libdispatch (see `DispatchLayout`).
struct LockIdentifier {
    let memory: any MemoryReading
    /// Whether a thread with that kernel id lives in this process.
    let isLive: (Int32) -> Bool

    /// The lock that the thread `waiter` waits for in `call`, or `nil` if the call is no wait for one.
    ///
    /// `frames` are the thread's innermost functions; there may be none.
    func identify(_ call: SystemCall, of waiter: Int32, in frames: [NamedFrame]) -> AwaitedLock? {
        guard call.purpose == .lock else { return nil }
        switch call.name {
        case "futex": return futex(call, waiter, frames)
        case "flock", "fcntl":
            return AwaitedLock(
                kind: .file, address: 0, function: call.name,
                ownership: .unknown("it is held through another open file, perhaps by another process")
            )
        case "semop", "semtimedop":
            return AwaitedLock(kind: .systemSemaphore, address: 0, function: call.name, ownership: .none)
        default:
            return AwaitedLock(
                kind: .futex, address: 0, function: nil, ownership: .unknown("several words are waited on"))
        }
    }

    private func futex(_ call: SystemCall, _ waiter: Int32, _ frames: [NamedFrame]) -> AwaitedLock {
        let address = call.argument(0)
        let function = LockFunction.outermost(of: frames)
        var site = AwaitedLock(
            kind: .futex, address: address, function: function?.name, hasTimeout: call.argument(3) != 0,
            ownership: .unknown("the lock is of a kind that is not known")
        )
        switch Futex.Operation(call.argument(1)) {
        case .lockPriorityInheritance:
            site.kind = Self.priorityInheritanceKind(function, frames)
            // libswiftCore's own names are not read: it has far more of them than the others.
            if site.kind == .once { site.function = "swift_once" }
            site.ownership = priorityInheritanceOwner(address)
        case .wait:
            if let queue = DispatchLayout.queue(ofWaiter: waiter, waitingOn: address, memory) {
                site.kind = .dispatchQueue
                site.function = function?.name ?? "dispatch_sync"
                (site.address, site.label) = (queue, DispatchLayout.label(of: queue, memory))
                site.ownership = queueOwner(queue, waiter)
            } else if let function {
                describe(&site, function, call)
            } else if Self.isInsideLibc(frames), case .thread(let owner) = mutexOwner(address) {
                // glibc's pthread_mutex_lock jumps to a function without a name for robust mutexes, and
                // pthread_mutex_timedlock does for all: what is left to go by are the mutex's own fields.
                site.kind = .pthreadMutex
                site.ownership = .thread(owner)
            } else if Self.isInsideLibc(frames), PosixSemaphore.isWaitedFor(at: address, call.argument(2), memory) {
                // sem_wait and its like jump to such a function, too.
                (site.kind, site.ownership) = (.semaphore, .none)
            }
        case nil:
            break
        }
        return site
    }

    /// What a wait that is not for a PI futex is for, by the function that made it.
    private func describe(_ site: inout AwaitedLock, _ function: LockFunction, _ call: SystemCall) {
        switch function.kind {
        case .mutex:
            site.kind = .pthreadMutex
            site.ownership = mutexOwner(site.address)
        case .condition:
            // A wake-up that waits to get its mutex back waits on the mutex: glibc uses plain FUTEX_WAIT with value 2 for
            // mutexes, and FUTEX_WAIT_BITSET with the condition's group counter for conditions.
            if Futex.isPlainWait(call.argument(1)), case .thread(let owner) = mutexOwner(site.address) {
                site.kind = .pthreadMutex
                site.ownership = .thread(owner)
            } else {
                (site.kind, site.ownership) = (.condition, .none)
            }
        case .readWriteLock:
            site.kind = .pthreadReadWriteLock
            (site.address, site.ownership) = writer(of: site.address)
        case .join:
            site.kind = .threadJoin
            site.ownership = joinedThread(site.address, expected: call.argument(2))
        case .dispatchOnce:
            site.kind = .dispatchOnce
            site.ownership = onceOwner(site.address)
        case .once:
            (site.kind, site.ownership) = (.once, .unknown("the one who runs the initializer is not written down"))
        case .semaphore: (site.kind, site.ownership) = (.semaphore, .none)
        case .dispatchSemaphore: (site.kind, site.ownership) = (.dispatchSemaphore, .none)
        case .dispatchGroup: (site.kind, site.ownership) = (.dispatchGroup, .none)
        case .barrier: (site.kind, site.ownership) = (.barrier, .none)
        case .dispatchUnfairLock: break
        }
    }

    private static func priorityInheritanceKind(_ function: LockFunction?, _ frames: [NamedFrame]) -> AwaitedLock.Kind {
        if let function { return function.kind == .dispatchUnfairLock ? .dispatchUnfairLock : .pthreadMutex }
        if isInsideLibc(frames) { return .pthreadMutex }
        // The runtime's only futexes with priority inheritance are those of swift_once, whose lock its owner keeps for as
        // long as the initializer runs (all callers of futex(2) in the disassembly of the 6.3 libraries).
        if frames.first?.function == LockFunction.anyCall, let caller = frames.dropFirst().first {
            if isOfSwiftRuntime(caller) { return .once }
            // Swift's Mutex, swift_once and libdispatch wait in the same way.
            if caller.isUnrecognizable { return .futex }
        }
        return frames.prefix(3).contains { $0.image == "libdispatch.so" } ? .dispatchUnfairLock : .swiftMutex
    }

    private static func isOfSwiftRuntime(_ frame: NamedFrame) -> Bool {
        frame.image == "libswiftCore.so" || frame.image == "libswift_Concurrency.so"
    }

    /// Whether libc itself waits, rather than somebody who calls futex(2) through its `syscall` function.
    private static func isInsideLibc(_ frames: [NamedFrame]) -> Bool {
        frames.first.map { $0.image == "libc.so.6" && $0.function != LockFunction.anyCall } ?? false
    }
}

// MARK: - Owners

extension LockIdentifier {
    private func live(_ thread: Int32, else reason: String = "it is no thread of this process") -> AwaitedLock.Ownership
    {
        isLive(thread) ? .thread(thread) : .unknown(reason)
    }

    /// The kernel's contract for PI futexes (futex(2)): the low 30 bits are the owner, bit 31 says that somebody waits,
    /// bit 30 that the owner has died.
    private func priorityInheritanceOwner(_ address: UInt64) -> AwaitedLock.Ownership {
        guard let word = memory.integer(at: address).map(Futex.Word.init) else { return .unknown("it cannot be read") }
        guard word.hasWaiters, !word.ownerDied, word.owner > 0 else { return .unknown("it was just let go") }
        return live(word.owner)
    }

    private func mutexOwner(_ address: UInt64) -> AwaitedLock.Ownership {
        guard let mutex = PthreadMutex(at: address, memory) else { return .unknown("it cannot be read") }
        guard let owner = mutex.ownerWhileWaitedFor else { return .unknown("it was just let go, or is damaged") }
        return live(owner, else: "the thread that took it is no thread of this process, or has ended")
    }

    /// The futex words of a rwlock are its phase, 8 bytes into it, and its writers' word, 12 bytes into it.
    private func writer(of futex: UInt64) -> (UInt64, AwaitedLock.Ownership) {
        for offset in [12, 8] as [UInt64] where futex > offset {
            guard let lock = PthreadReadWriteLock(at: futex - offset, memory), let writer = lock.writerWhileHeld,
                isLive(writer)
            else { continue }
            return (futex - offset, .thread(writer))
        }
        return (futex, .unknown("it is held by readers, which it does not name, or was just let go"))
    }

    /// A joined thread's id is what the join waits to become 0 (the kernel clears it at the thread's end: set_tid_address(2)).
    private func joinedThread(_ address: UInt64, expected: UInt64) -> AwaitedLock.Ownership {
        guard let word = memory.integer(at: address), word > 0, UInt64(word) == expected else {
            return .unknown("the thread has just ended")
        }
        return live(word, else: "the thread has just ended")
    }

    private func onceOwner(_ address: UInt64) -> AwaitedLock.Ownership {
        guard let word = memory.integer(at: address).map(Futex.Word.init), word.hasWaiters, word.owner > 0 else {
            return .unknown("the initializer has just ended")
        }
        return live(word.owner)
    }

    private func queueOwner(_ queue: UInt64, _ waiter: Int32) -> AwaitedLock.Ownership {
        guard let owner = DispatchLayout.owner(of: queue, besides: waiter, memory) else {
            return .unknown("no single thread runs the queue: it is concurrent, suspended, or has not been started")
        }
        return live(owner)
    }
}
