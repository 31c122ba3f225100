extension Cause {
    /// One sentence: how long, in what, and who or what it was for.
    static func summary(_ conclusion: CauseConclusion, _ evidence: Evidence) -> String {
        let split = evidence.split
        let all = whole(split.duration)
        let observation = conclusion.observation
        switch conclusion.kind {
        case .cpu:
            return "On CPU for \(whole(split.onCPU)) of \(all) ms\(kernelPart(evidence))."
        case .cpuContention:
            return "Ready to run but without a CPU for \(whole(split.runQueue)) of \(all) ms: other threads had them."
        case .throttled:
            return
                "Ready to run but held back for \(whole(split.runQueue)) of \(all) ms: its cgroup's CPU quota was used up."
        case .paging:
            let file = evidence.pagedFile.map { ", the last of them for \($0)" } ?? ""
            return "Waited for pages of memory, for \(whole(split.blocked)) of \(all) ms: "
                + "\(evidence.majorFaults) page faults went to a disk\(file)."
        case .sleep:
            return "Slept for \(whole(split.blocked)) of \(all) ms in \(place(observation))."
        case .io, .syscall:
            return "Blocked for \(whole(split.blocked)) of \(all) ms in \(place(observation))."
        case .lock:
            return "Blocked for \(whole(split.blocked)) of \(all) ms in \(lock(observation))."
        case .deadlock:
            return observation?.lock.map(deadlock) ?? "A deadlock."
        case .unknown:
            return "Blocked for \(whole(split.blocked)) of \(all) ms, in waits that no sample met."
        }
    }

    private static func whole(_ nanoseconds: UInt64) -> UInt64 { (nanoseconds + 500_000) / 1_000_000 }

    private static func kernelPart(_ evidence: Evidence) -> String {
        guard let share = evidence.kernelShare, share >= 0.5 else { return "" }
        return ", \(Int((share * 100).rounded())) % of it in the kernel"
    }

    private static func place(_ observation: Observation?) -> String {
        observation?.call.map(\.description) ?? observation?.function ?? "a system call"
    }

    private static func lock(_ observation: Observation?) -> String {
        guard let wait = observation?.lock else { return place(observation) }
        let site = wait.site
        let function =
            site.kind == .file
            ? place(observation) : site.function ?? (site.kind == .pthreadMutex ? "a pthread mutex" : "futex")
        switch site.ownership {
        case .none:
            return "\(function): \(site.kind.noun) has no owner, any thread may end the wait"
        case .unknown(let reason):
            return "\(function), for \(site.name); its owner is not known: \(reason)"
        case .thread:
            guard let first = wait.owners.first else { return "\(function), for \(site.name)" }
            let verb: String
            switch site.kind {
            case .threadJoin: verb = "waits for the end of"
            case .once, .dispatchOnce: verb = "\(site.name) is run by"
            default: verb = "\(site.name) is held by"
            }
            return "\(function); \(verb) \(name(first)), which \(wait.chainInWords)"
        }
    }

    private static func deadlock(_ wait: LockOwnership) -> String {
        if wait.owners.count == 1, let only = wait.owners.first {
            return "Deadlock: \(name(only)) waits for \(wait.site.name) that it holds itself."
        }
        // The circle closes at a thread that is in it already, which is the last of the owners.
        var text = "Deadlock: waits for \(wait.site.name)"
        for (index, owner) in wait.owners.enumerated() {
            if index > 0 { text += ", which waits for \(wait.owners[index - 1].waitsFor?.name ?? "a lock")" }
            text += " held by \(name(owner))"
        }
        return text + "."
    }

    fileprivate static func name(_ owner: LockOwnership.Owner) -> String {
        "thread \(owner.thread.id)" + (owner.thread.name.map { " \"\($0)\"" } ?? "")
    }
}

extension LockOwnership {
    /// What the first owner does, which may be to wait for the second one, and so on.
    fileprivate var chainInWords: String {
        var text = ""
        for (index, owner) in owners.enumerated() {
            if index > 0 { text += " held by \(Cause.name(owner)), which " }
            guard owner.waitsFor == nil || index == owners.count - 1 else {
                text += "waits for \(owner.waitsFor?.name ?? "a lock")"
                continue
            }
            text += owner.doing
        }
        return text
    }
}

extension LockOwnership.Owner {
    fileprivate var doing: String {
        if isRunning { return "is running" }
        if let waitsFor { return "waits for \(waitsFor.name)" }
        return systemCall.map { "is in \($0)" } ?? "is waiting"
    }
}

extension AwaitedLock {
    /// The lock in a sentence: with an article or a name.
    fileprivate var name: String {
        label.map { "\(kind.noun) \"\($0)\"" } ?? kind.noun
    }
}

extension AwaitedLock.Kind {
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
        case .futex: "a futex"
        }
    }
}
