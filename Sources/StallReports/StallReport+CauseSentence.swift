extension StallReport.Cause {
    /// One sentence for a reader: how long, in what, and for what.
    ///
    /// It is made from the other fields of the cause, so it says nothing that they do not hold.
    package var sentence: String {
        let all = Self.whole(onCPUMilliseconds + runQueueMilliseconds + blockedMilliseconds)
        let blocked = "\(Self.whole(blockedMilliseconds)) of \(all) ms"
        let ready = "\(Self.whole(runQueueMilliseconds)) of \(all) ms"
        switch kind {
        case .cpu:
            return "On CPU for \(Self.whole(onCPUMilliseconds)) of \(all) ms\(kernelPart)."
        case .cpuContention:
            return "Ready to run but without a CPU for \(ready): other threads had them."
        case .throttled:
            return "Ready to run but held back for \(ready): its cgroup's CPU quota was used up."
        case .paging:
            let file = pagedFile.map { ", the last of them for \($0)" } ?? ""
            let kernel = Self.whole(onCPUMilliseconds * (kernelShare ?? 0))
            let handling = kernel * 10 >= all ? ", and handled them in the kernel for \(kernel) ms" : ""
            return "Waited for pages of memory for \(blocked)\(handling): "
                + "\(majorFaults) page faults went to a disk\(file)."
        case .sleep:
            return "Slept for \(blocked) in \(place)."
        case .io, .syscall:
            return "Blocked for \(blocked) in \(place)."
        case .lock:
            return "Blocked for \(blocked) in \(lock.map(lockWait) ?? place)."
        case .deadlock:
            return lock.map(deadlock) ?? "A deadlock."
        default:
            return "Blocked for \(blocked), in waits that no sample met."
        }
    }

    private static func whole(_ milliseconds: Double) -> Int { Int(milliseconds.rounded()) }

    private var kernelPart: String {
        guard let kernelShare, kernelShare >= 0.5 else { return "" }
        return ", \(Int((kernelShare * 100).rounded())) % of it in the kernel"
    }

    private var place: String {
        systemCall.map(\.description) ?? function ?? "a system call"
    }

    private func lockWait(_ lock: StallReport.Lock) -> String {
        let function =
            lock.kind == .file ? place : lock.function ?? (lock.kind == .pthreadMutex ? "a pthread mutex" : "futex")
        if !lock.kind.hasOwner {
            return "\(function): \(lock.kind.noun) has no owner, any thread may end the wait"
        }
        let name = lock.kind.named(lock.label)
        guard let first = lock.owners.first else {
            return "\(function), for \(name)" + (lock.reason.map { "; its owner is not known: \($0)" } ?? "")
        }
        let verb =
            switch lock.kind {
            case .threadJoin: "waits for the end of"
            case .once, .dispatchOnce: "\(name) is run by"
            default: "\(name) is held by"
            }
        return "\(function); \(verb) \(first.thread.inWords), which \(Self.chain(lock.owners))"
    }

    /// What the first owner does, which may be to wait for the second one, and so on.
    private static func chain(_ owners: [StallReport.LockOwner]) -> String {
        var text = ""
        for (index, owner) in owners.enumerated() {
            if index > 0 { text += " held by \(owner.thread.inWords), which " }
            guard owner.waitsFor == nil || index == owners.count - 1 else {
                text += "waits for \(owner.awaitedName)"
                continue
            }
            text += owner.doing
        }
        return text
    }

    private func deadlock(_ lock: StallReport.Lock) -> String {
        let name = lock.kind.named(lock.label)
        if lock.owners.count == 1, let only = lock.owners.first {
            return "Deadlock: \(only.thread.inWords) waits for \(name) that it holds itself."
        }
        // The circle closes at a thread that is in it already, which is the last of the owners.
        var text = "Deadlock: waits for \(name)"
        for (index, owner) in lock.owners.enumerated() {
            if index > 0 { text += ", which waits for \(lock.owners[index - 1].awaitedName)" }
            text += " held by \(owner.thread.inWords)"
        }
        return text + "."
    }
}

extension StallReport.SystemCall: CustomStringConvertible {
    /// `fsync(/var/lib/wal)`, or the name alone.
    public var description: String { target.map { "\(name)(\($0))" } ?? name }
}

extension StallReport.ThreadDescription {
    fileprivate var inWords: String { "thread \(id)" + (name.map { " \"\($0)\"" } ?? "") }
}

extension StallReport.LockOwner {
    fileprivate var doing: String {
        if isRunning { return "is running" }
        if waitsFor != nil { return "waits for \(awaitedName)" }
        return systemCall.map { "is in \($0)" } ?? "is waiting"
    }

    fileprivate var awaitedName: String { waitsFor?.named(waitsForLabel) ?? "a lock" }
}

extension StallReport.LockKind {
    /// Whether a lock of this kind has an owner that could be named.
    ///
    /// Any thread may signal a semaphore, a group, a condition or a barrier.
    package var hasOwner: Bool {
        switch self {
        case .semaphore, .dispatchSemaphore, .systemSemaphore, .dispatchGroup, .condition, .barrier: false
        default: true
        }
    }

    /// The lock in a sentence: with an article, and with the label that the app gave it.
    fileprivate func named(_ label: String?) -> String { label.map { "\(noun) \"\($0)\"" } ?? noun }

    fileprivate var noun: String {
        switch self {
        case .pthreadMutex, .swiftMutex: "the mutex"
        case .pthreadReadWriteLock: "the read-write lock"
        case .dispatchUnfairLock: "a lock of libdispatch"
        case .dispatchQueue: "the dispatch queue"
        case .dispatchOnce, .once: "the one-time initialization"
        case .threadJoin: "the thread"
        case .semaphore, .dispatchSemaphore, .systemSemaphore: "a semaphore"
        case .dispatchGroup: "a dispatch group"
        case .condition: "a condition"
        case .barrier: "a barrier"
        case .file: "the file lock"
        default: "a futex"
        }
    }
}
