import StackCapture
import LinuxSupport
import StallReports

/// Identifies the lock that a thread waits for by its system call, its innermost functions and the lock's memory.
///
/// A wrong owner is worse than none: an owner is reported only if all fields of the lock's layout agree and the thread is
/// alive. The layouts are those of glibc (bits/struct_mutex.h, bits/struct_rwlock.h: the same on both 64-bit
/// architectures), of the kernel's futex interface (futex(2)), and of libdispatch (see `DispatchLayout`).
struct LockIdentifier {
    let memory: any MemoryReading
    let isLive: (Int32) -> Bool
    /// Whether other processes may have the memory at an address, too: their threads may have the numbers of own ones.
    var isShared: (UInt64) -> Bool = { _ in false }
    /// The stdio streams of this process; `nil` if the layout of their locks is not known.
    var streams: StandardStreams?
    /// Where the ids of threads are; `nil` if that is not known.
    var descriptor: ThreadDescriptor?
    /// The first word of each dispatch group; `nil` if it is not known.
    var groupType: UInt64?
    /// The first word of each Swift task; 0 if it is not known.
    var taskMetadata: UInt64 = 0

    /// The lock that `waiter` waits for in `call`, if it does; `frames` are its innermost functions, if any.
    func identify(_ call: SystemCall, of waiter: Int32, in frames: [NamedFrame]) -> AwaitedLock? {
        guard call.purpose == .lock else { return nil }
        switch call.name {
        case "futex":
            var lock = named(futex(call, waiter, frames))
            if lock.ownership == .none { lock.limit = Futex.limit(of: call, memory) }
            return lock
        case "flock", "fcntl":
            return AwaitedLock(
                kind: .file, function: call.name,
                ownership: .unknown("it is locked through another open file, possibly by another process"))
        case "semop", "semtimedop":
            // struct sembuf: three shorts, of which the second is the operation. That of 0 waits until the value is 0.
            let isForZero = call.argument(2) == 1 && memory.integer(at: call.argument(1)).map { $0 >> 16 } == 0
            return AwaitedLock(
                kind: isForZero ? .systemSemaphoreZero : .systemSemaphore, function: call.name,
                hasTimeout: call.name == "semtimedop" && call.argument(3) != 0, ownership: .none)
        default:
            return AwaitedLock(kind: .futex, ownership: .unknown("the thread waits for several futexes"))
        }
    }

    private func futex(_ call: SystemCall, _ waiter: Int32, _ frames: [NamedFrame]) -> AwaitedLock {
        let address = call.argument(0)
        let function = LockFunction.outermost(of: frames)
        var lock = AwaitedLock(
            kind: .futex, address: address, function: function?.name, hasTimeout: call.argument(3) != 0,
            ownership: .unknown("the kind of lock is not known")
        )
        if Futex.hasPriorityInheritance(call.argument(1)) {
            lock.kind = Self.priorityInheritanceKind(function, frames)
            // The symbols of libswiftCore are not read: it has many more than the other libraries.
            if lock.kind == .once { lock.function = "swift_once" }
            lock.ownership = priorityInheritanceOwner(call)
            return lock
        }
        guard Futex.isWait(call.argument(1)) else { return lock }
        if let stream = streams?.name(ofLockAt: address, memory) {
            (lock.kind, lock.label, lock.function) = (.stdio, stream, StreamFunction.outermost(of: frames))
            let owner = streams?.owner(ofLockAt: address, memory)
            lock.ownership = owner.map { live($0) } ?? .unknown("it was just released")
        } else if let queue = DispatchLayout.queue(ofWaiter: waiter, waitingOn: address, memory) {
            // No frame surely tells dispatch_sync from dispatch_barrier_sync and dispatch_async_and_wait.
            (lock.kind, lock.function) = (.dispatchQueue, nil)
            let blocker = DispatchLayout.blocker(of: queue, besides: waiter, memory)
            lock.address = blocker?.queue ?? queue
            lock.label = DispatchLayout.label(of: lock.address, memory)
            let why =
                blocker == nil
                ? "no single thread runs the queue: it is concurrent, or has not been started"
                : "it is suspended, or has not been activated"
            lock.ownership = blocker?.thread.map { live($0) } ?? .unknown(why)
        } else if let function {
            describe(&lock, function, call, frames)
        } else if let group = DispatchLayout.group(ofType: groupType, waitedForAt: address, memory) {
            // A stripped libdispatch has jumped from the function that it exports to one without a name.
            (lock.kind, lock.function, lock.address) = (.dispatchGroup, "dispatch_group_wait", group)
            lock.ownership = .none
        } else if Self.isInsideStrippedDispatch(frames), case .thread(let owner) = onceOwner(address),
            owner != waiter
        {
            // Of what libdispatch waits for in this way, only a once stores its owner in the word.
            (lock.kind, lock.function) = (.dispatchOnce, "dispatch_once")
            lock.ownership = .thread(owner)
        } else if Self.isInsideLibc(frames), Futex.isShared(call.argument(1)), !Futex.isPlainWait(call.argument(1)),
            case .thread(let joined) = joinedThread(address, expected: call.argument(2)), joined != waiter
        {
            // pthread_join jumps to a function without a name. The kernel wakes its futex without the private flag.
            (lock.kind, lock.function) = (.threadJoin, "pthread_join")
            lock.ownership = .thread(joined)
        } else if Self.isInsideLibc(frames), isMutex(call) {
            // glibc's pthread_mutex_lock jumps to a function without a name for robust mutexes, and
            // pthread_mutex_timedlock does so for all. Only the mutex's fields identify it then.
            lock.kind = Self.mutexKind(frames)
            lock.ownership = mutexOwner(call)
        } else if Self.isInsideLibc(frames), PosixSemaphore.isWaitedFor(at: address, call.argument(2), memory) {
            // sem_wait and similar functions jump to such a function, too.
            lock.function = LockFunction.semaphoreOfStrippedDispatch(frames)?.name
            (lock.kind, lock.ownership) = (lock.function == nil ? .semaphore : .dispatchSemaphore, .none)
        }
        return lock
    }

    /// Returns the lock with the task whose status lock it is, if it is one: the runtime holds it while it cancels the task.
    private func named(_ lock: AwaitedLock) -> AwaitedLock {
        guard lock.kind == .pthreadMutex,
            let task = SwiftTaskMemory(memory, metadata: taskMetadata).task(withStatusLockAt: lock.address)
        else { return lock }
        var named = lock
        (named.kind, named.label) = (.swiftTaskStatus, "\(task.id)" + (task.name.map { " \"\($0)\"" } ?? ""))
        return named
    }

    private func describe(
        _ lock: inout AwaitedLock, _ function: LockFunction, _ call: SystemCall, _ frames: [NamedFrame]
    ) {
        // Such a lock has priority inheritance.
        guard function.kind != .dispatchUnfairLock else { return }
        lock.kind = function.kind
        switch function.kind {
        case .pthreadMutex:
            lock.kind = Self.mutexKind(frames)
            lock.ownership = mutexOwner(call)
        case .condition:
            lock.ownership = .none
            // A thread that was woken and waits for its mutex waits on the mutex's futex: glibc uses plain FUTEX_WAIT with value 2 for
            // mutexes, and FUTEX_WAIT_BITSET with the condition's group counter for conditions.
            if Futex.isPlainWait(call.argument(1)), case .thread(let owner) = mutexOwner(call) {
                (lock.kind, lock.ownership) = (.pthreadMutex, .thread(owner))
            }
        case .pthreadReadWriteLock: (lock.address, lock.ownership) = writer(call)
        case .threadJoin: lock.ownership = joinedThread(lock.address, expected: call.argument(2))
        case .dispatchOnce: lock.ownership = onceOwner(lock.address)
        case .once: lock.ownership = .unknown("the lock does not store the thread that runs the initializer")
        default: lock.ownership = .none
        }
    }

    private static func mutexKind(_ frames: [NamedFrame]) -> AwaitedLock.Kind {
        LoaderLockFunctions.isWaiting(in: frames) ? .dynamicLinker : .pthreadMutex
    }

    private static func priorityInheritanceKind(_ function: LockFunction?, _ frames: [NamedFrame]) -> AwaitedLock.Kind {
        if let function { return function.kind == .dispatchUnfairLock ? .dispatchUnfairLock : .pthreadMutex }
        if isInsideLibc(frames) { return .pthreadMutex }
        // The runtime's only futexes with priority inheritance are those of swift_once, whose lock its owner keeps for as
        // long as the initializer runs (all callers of futex(2) in the disassembly of the 6.3 libraries).
        if frames.first?.function == LockFunction.anyCall, let caller = frames.dropFirst().first {
            if ["libswiftCore.so", "libswift_Concurrency.so"].contains(caller.image) { return .once }
            // Swift's Mutex, swift_once and libdispatch wait in the same way.
            if caller.isUnrecognizable { return .futex }
        }
        return frames.prefix(3).contains { $0.image == "libdispatch.so" } ? .dispatchUnfairLock : .swiftMutex
    }

    /// Returns whether functions of libdispatch wait that have no names: a stripped one exports few.
    private static func isInsideStrippedDispatch(_ frames: [NamedFrame]) -> Bool {
        frames.first?.function == LockFunction.anyCall
            && frames.dropFirst().first == NamedFrame(function: nil, image: "libdispatch.so")
    }

    /// Returns whether libc itself waits, not a caller of its `syscall` function.
    private static func isInsideLibc(_ frames: [NamedFrame]) -> Bool {
        frames.first.map { $0.image == "libc.so.6" && $0.function != LockFunction.anyCall } ?? false
    }
}

// MARK: - Owners

extension LockIdentifier {
    /// The owner with a number in a lock, which the thread of another process may have, if they share a `lock`.
    private func live(
        _ thread: Int32, of lock: SystemCall? = nil, else reason: String = "its thread id is not of this process"
    ) -> AwaitedLock.Ownership {
        guard isLive(thread) else { return .unknown(reason) }
        // The kernel lets no other process have a lock whose waiters it wakes privately.
        if let lock, Futex.isShared(lock.argument(1)), isShared(lock.argument(0)) {
            return .unknown("processes share it, and a thread of another one may have the number in it")
        }
        return .thread(thread)
    }

    /// PI futexes (futex(2)): the low 30 bits are the owner, bit 31 is set while threads wait, bit 30 if it has died.
    private func priorityInheritanceOwner(_ call: SystemCall) -> AwaitedLock.Ownership {
        guard let word = memory.integer(at: call.argument(0)).map(Futex.Word.init) else {
            return .unknown("it cannot be read")
        }
        guard word.hasWaiters, !word.ownerDied, word.owner > 0 else { return .unknown("it was just released") }
        return live(word.owner, of: call)
    }

    /// Returns whether the fields are those of a locked mutex: of a thread, or if processes may share it, of any.
    private func isMutex(_ call: SystemCall) -> Bool {
        guard let mutex = PthreadMutex(at: call.argument(0), memory), let owner = mutex.ownerWhileWaitedFor else {
            return false
        }
        return isLive(owner) || mutex.mayBeShared && Futex.isShared(call.argument(1))
    }

    private func mutexOwner(_ call: SystemCall) -> AwaitedLock.Ownership {
        guard let mutex = PthreadMutex(at: call.argument(0), memory) else { return .unknown("it cannot be read") }
        guard let owner = mutex.ownerWhileWaitedFor else { return .unknown("it was just released, or is damaged") }
        return live(owner, of: call, else: Self.lostOwner)
    }

    private static let lostOwner = "the thread that locked it belongs to another process, or has ended"

    /// Returns the rwlock's address and writer: a waiter sleeps on the word at offset 8 (phase) or 12 (writers).
    private func writer(_ call: SystemCall) -> (UInt64, AwaitedLock.Ownership) {
        let futex = call.argument(0)
        let writers = [12, 8].filter { futex > $0 }.compactMap { offset -> (address: UInt64, writer: Int32)? in
            PthreadReadWriteLock.writer(ofLockAt: futex - offset, memory).map { (futex - offset, $0) }
        }
        if let (address, writer) = writers.first(where: { isLive($0.writer) }) ?? writers.first {
            return (address, live(writer, of: call, else: Self.lostOwner))
        }
        let others = Futex.isShared(call.argument(1)) ? ", a thread of another process owns it" : ""
        // The first of the writers that wait does so for the phase.
        guard futex > 8, let count = PthreadReadWriteLock.readers(ofLockAt: futex - 8, memory), others.isEmpty else {
            return (futex, .unknown("readers own it, and it does not store them\(others), or it was just released"))
        }
        let own = count == 1 ? "1 reader owns" : "\(count) readers own"
        return (futex - 8, .unknown("\(own) it, and it does not store which threads they are"))
    }

    /// Returns the joined thread: the kernel clears the futex word at its end (set_tid_address(2)).
    private func joinedThread(_ address: UInt64, expected: UInt64) -> AwaitedLock.Ownership {
        guard let word = memory.integer(at: address), word > 0, UInt64(word) == expected else {
            return .unknown("the thread has just ended")
        }
        guard let thread = ThreadDescriptor.thread(endingAt: address, word: word, descriptor, memory) else {
            return .unknown("it is not known where this C library keeps a thread's id")
        }
        return live(thread, else: "the thread has just ended")
    }

    private func onceOwner(_ address: UInt64) -> AwaitedLock.Ownership {
        guard let word = memory.integer(at: address).map(Futex.Word.init), word.hasWaiters, word.owner > 0 else {
            return .unknown("the initializer has just ended")
        }
        return live(word.owner)
    }
}
