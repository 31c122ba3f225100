extension StallReport.LockKind {
    /// Any thread may signal a semaphore, a group, a condition or a barrier.
    package var hasOwner: Bool { end == nil }

    /// What ends the wait for a lock without an owner, as a clause; `nil` for other kinds.
    var end: String? { lockWords[self]?.end }

    /// Returns the lock as a phrase: an article, the noun and the app's label.
    package func named(_ label: String?) -> String {
        let noun = lockWords[self]?.noun ?? "a futex"
        guard let label else { return noun }
        return self == .swiftTaskStatus ? "\(noun) \(label)" : "\(noun) \"\(label)\""
    }

    /// Returns the lock with its owner: `the mutex held by thread 4711`, `the end of thread 4711`.
    func named(_ label: String?, of owner: String) -> String {
        switch self {
        case .threadJoin: "the end of \(owner)"
        case .once, .dispatchOnce: "\(named(label)) run by \(owner)"
        default: "\(named(label)) held by \(owner)"
        }
    }
}

/// The words of each kind of lock; `end` is what ends the wait for one without an owner.
private let lockWords: [StallReport.LockKind: (noun: String, end: String?)] = [
    .pthreadMutex: ("the mutex", nil),
    .swiftMutex: ("the mutex", nil),
    .pthreadReadWriteLock: ("the read-write lock", nil),
    .dispatchUnfairLock: ("a lock of libdispatch", nil),
    .dispatchQueue: ("the dispatch queue", nil),
    .dispatchOnce: ("the one-time initialization", nil),
    .once: ("the one-time initialization", nil),
    .threadJoin: ("the thread", nil),
    .semaphore: ("a semaphore", "a thread signals the semaphore"),
    .dispatchSemaphore: ("a semaphore", "a thread signals the semaphore"),
    // Of several operations of semop(2), one may wait until it is 0: a thread then takes from it.
    .systemSemaphore: ("a semaphore", "a thread changes the semaphore"),
    .systemSemaphoreZero: ("a semaphore", "a thread takes the semaphore to 0"),
    .dispatchGroup: ("a dispatch group", "the last thread leaves the dispatch group"),
    .condition: ("a condition", "a thread signals the condition"),
    .barrier: ("a barrier", "the last thread reaches the barrier"),
    .file: ("the file lock", nil),
    .stdio: ("the lock of the stream", nil),
    .dynamicLinker: ("the dynamic linker's lock", nil),
    .swiftTaskStatus: ("the status lock of task", nil),
]

extension StallReport.LockOwner {
    /// What it waits for, as a phrase.
    var awaitedName: String { waitsFor?.named(waitsForLabel) ?? "a lock" }

    func awaited(of owner: String) -> String {
        waitsFor?.named(waitsForLabel, of: owner) ?? "a lock held by \(owner)"
    }
}

extension StallReport.Lock {
    /// The owners in the cycle that the last one closes: all of them, if the last one is the stalled thread.
    ///
    /// If it is an owner that comes before, too, the stalled thread and the owners up to there only wait for the cycle.
    var cycle: ArraySlice<StallReport.LockOwner> {
        let first = owners.dropLast().firstIndex { $0.thread.id == owners.last?.thread.id }
        return owners[(first.map { $0 + 1 } ?? 0)...]
    }

    /// `waits in pthread_mutex_lock for the mutex, which thread 4711 holds`.
    var waitInWords: String {
        let place = function.map { " in \($0)" } ?? ""
        let name = kind.named(label)
        if let end = kind.end {
            return "waits\(place) until \(end)" + (hasTimeLimit == true ? ", or until a time limit ends" : "")
        }
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
