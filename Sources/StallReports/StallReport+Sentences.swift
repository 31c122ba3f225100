extension StallReport.Cause {
    /// One sentence that says how long the thread waited or ran, where, and for what.
    ///
    /// Uses only the other fields of the cause.
    package var sentence: String {
        let all = Self.whole(onCPUMilliseconds + runQueueMilliseconds + blockedMilliseconds)
        let blocked = "\(Self.whole(blockedMilliseconds)) of \(all) ms"
        let ready = "\(Self.whole(runQueueMilliseconds)) of \(all) ms"
        switch kind {
        case .cpu:
            if let systemCall, let kernelShare, kernelShare >= 0.5 {
                let target = systemCall.target.map { " of \($0)" } ?? ""
                let kernel = Self.whole(onCPUMilliseconds * kernelShare)
                return "In \(systemCall.name)(2)\(target) for \(kernel) of \(all) ms, "
                    + "\(systemCall.copiesData ? "copying" : "running") in the kernel."
            }
            return "On CPU for \(Self.whole(onCPUMilliseconds)) of \(all) ms\(kernelPart)"
                + rest(runQueueMilliseconds, "waiting for a CPU") + "."
        case .cpuContention:
            return "Ready to run but without a CPU for \(ready): other threads used the CPUs"
                + rest(onCPUMilliseconds, "on CPU") + "."
        case .throttled:
            return "Ready to run but throttled for \(ready): its cgroup had used up its CPU quota."
        case .paging:
            let file = pagedFile.map { ", the last one for \($0)" } ?? ""
            let kernel = Self.whole(onCPUMilliseconds * (kernelShare ?? 0))
            let handling = kernel * 10 >= all ? ", and handled them in the kernel for \(kernel) ms" : ""
            let pages = "Waited for memory pages for \(blocked)\(handling)"
            // A fault that a thread of userfaultfd(2) or a file system in user space serves is no major one.
            if majorFaults == 0 { return "\(pages), though no page fault counts as one for a disk." }
            return "\(pages): \(majorFaults) page faults went to a disk\(file)."
        case .sleep:
            return "Slept for \(blocked) in \(place)."
        case .io where (kernelShare ?? 0) >= 0.5 && onCPUMilliseconds * 4 >= blockedMilliseconds:
            return "Blocked for \(Self.whole(blockedMilliseconds)) ms and on CPU for "
                + "\(Self.whole(onCPUMilliseconds)) of \(all) ms in \(place)\(peers(of: systemCall))."
        case .io, .syscall:
            return "Blocked for \(blocked) in \(place)\(peers(of: systemCall))."
        case .lock:
            return "Blocked for \(blocked) in \(lock.map(lockWait) ?? place)."
        case .deadlock:
            return lock.map(deadlock) ?? "A deadlock."
        default:
            return "Blocked for \(blocked), in waits that no sample caught."
        }
    }

    fileprivate static func whole(_ milliseconds: Double) -> Int { Int(milliseconds.rounded()) }

    private var kernelPart: String {
        guard let kernelShare, kernelShare >= 0.5 else { return "" }
        return ", \(kernelShare.percent) of it in the kernel"
    }

    /// Another part of the time, if it is a quarter or more.
    private func rest(_ milliseconds: Double, _ activity: String) -> String {
        let all = onCPUMilliseconds + runQueueMilliseconds + blockedMilliseconds
        return milliseconds * 4 >= all && all > 0 ? "; \(activity) for \(Self.whole(milliseconds)) ms" : ""
    }

    private var place: String {
        systemCall.map(\.description) ?? function ?? "a system call"
    }

    private func peers(of call: StallReport.SystemCall?) -> String {
        call?.peersInWords.map { "; \($0)" } ?? ""
    }

    private func lockWait(_ lock: StallReport.Lock) -> String {
        let function =
            lock.kind == .file ? place : lock.function ?? (lock.kind == .pthreadMutex ? "a pthread mutex" : "futex")
        if !lock.kind.hasOwner {
            return "\(function): \(lock.kind.noun) has no owner; any thread may end the wait"
        }
        let name = lock.kind.named(lock.label)
        guard let first = lock.owners.first else {
            if lock.kind == .file, systemCall?.peers != nil { return function + peers(of: systemCall) }
            return "\(function), for \(name)" + (lock.reason.map { "; its owner is not known: \($0)" } ?? "")
        }
        let verb =
            switch lock.kind {
            case .threadJoin: "waits for the end of"
            case .once, .dispatchOnce: "\(name) is run by"
            default: "\(name) is held by"
            }
        return "\(function); \(verb) \(first.thread.inWords), which \(Self.chain(lock.owners))"
            + peers(of: lock.owners.last?.systemCall)
    }

    /// Describes what the first owner does: it may wait for the second one, which may wait for the third, and so on.
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
            return "Deadlock: \(only.thread.inWords) waits for \(name), which it holds itself."
        }
        // The last owner closes the cycle: it is a thread that occurs earlier in it.
        var text = "Deadlock: waits for \(name)"
        for (index, owner) in lock.owners.enumerated() {
            if index > 0 { text += ", which waits for \(lock.owners[index - 1].awaitedName)" }
            text += " held by \(owner.thread.inWords)"
        }
        return text + "."
    }
}

extension StallReport.SystemCall {
    /// Whether the call copies data between files or between a file and memory.
    fileprivate var copiesData: Bool {
        [
            "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2",
            "copy_file_range", "sendfile", "splice", "process_vm_readv", "process_vm_writev",
        ].contains(name)
    }
}

extension StallReport.SystemCall: CustomStringConvertible {
    /// `fsync(/var/lib/wal)`, or the name alone.
    public var description: String { target.map { "\(name)(\($0))" } ?? name }
}

extension StallReport.ThreadDescription {
    /// `thread 4711 "worker"`, or without the name.
    package var inWords: String { "thread \(id)" + (name.map { " \"\($0)\"" } ?? "") }
}

extension StallReport.LockOwner {
    /// Whether waiting for a CPU is what the thread did: see ``StallReport/OwnerTime``.
    package var isStarved: Bool {
        guard let time, time.observedMilliseconds > 0 else { return false }
        return time.runQueueMilliseconds >= time.observedMilliseconds * StallReport.OwnerTime.starvedShare
    }

    /// What the thread did, as a phrase that follows its name: `is running`, `waits for the mutex`.
    package var doing: String {
        if isStarved, let time {
            return "waited for a CPU for \(StallReport.Cause.whole(time.runQueueMilliseconds)) of "
                + "\(StallReport.Cause.whole(time.observedMilliseconds)) ms" + (priorityInversion?.inWords ?? "")
        }
        if isRunning, let time, time.blockedMilliseconds > time.observedMilliseconds / 2 {
            return "was blocked for \(StallReport.Cause.whole(time.blockedMilliseconds)) of "
                + "\(StallReport.Cause.whole(time.observedMilliseconds)) ms"
        }
        if isRunning { return "is running" }
        if waitsFor != nil { return "waits for \(awaitedName)" }
        return systemCall.map { "is in \($0)" } ?? "is waiting"
    }

    fileprivate var awaitedName: String { waitsFor?.named(waitsForLabel) ?? "a lock" }
}

extension StallReport.PriorityInversion {
    fileprivate var inWords: String {
        let work = queue.map { "the queue \"\($0)\"" } ?? "its work"
        return " (priority inversion: its nice value is \(nice), that of the stalled thread \(waiterNice); "
            + "raise the QoS of \(work))"
    }
}

extension StallReport.LockKind {
    /// Whether locks of this kind have an owner.
    ///
    /// Any thread may signal a semaphore, a group, a condition or a barrier.
    package var hasOwner: Bool {
        switch self {
        case .semaphore, .dispatchSemaphore, .systemSemaphore, .dispatchGroup, .condition, .barrier: false
        default: true
        }
    }

    /// Returns the lock as a phrase: an article, the noun and the app's label.
    func named(_ label: String?) -> String { label.map { "\(noun) \"\($0)\"" } ?? noun }

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
        case .stdio: "the lock of the stream"
        case .dynamicLinker: "the dynamic linker's lock"
        default: "a futex"
        }
    }
}

extension StallReport.OtherThread {
    /// What the thread did, as a phrase that follows its name: `waits in poll`, `is on a CPU or ready to run`.
    package var activity: String {
        if let lock { return lock.waitInWords }
        if let systemCall { return "waits in \(systemCall)" }
        switch threadState {
        case .running?: return "is on a CPU or ready to run"
        case nil: return "was not captured" + (reason.map { ": \($0)" } ?? "")
        default: return "waits"
        }
    }
}

extension StallReport.Lock {
    /// `waits in pthread_mutex_lock for the mutex, which thread 4711 holds`.
    fileprivate var waitInWords: String {
        let place = function.map { " in \($0)" } ?? ""
        let name = kind.named(label)
        guard kind.hasOwner else { return "waits\(place) for \(name), which any thread may end" }
        guard let owner = owners.first?.thread else {
            return "waits\(place) for \(name)" + (reason.map { "; its owner is not known: \($0)" } ?? "")
        }
        let wait =
            switch kind {
            case .threadJoin: "for the end of \(owner.inWords)"
            case .once, .dispatchOnce: "for \(name), which \(owner.inWords) runs"
            default: "for \(name), which \(owner.inWords) holds"
            }
        return (isDeadlock ? "is in a deadlock: waits" : "waits") + "\(place) \(wait)"
    }
}
