extension StallReport.LockKind {
    /// Any thread may signal a semaphore, a group, a condition or a barrier.
    package var hasOwner: Bool { end == nil }

    /// What ends the wait for a lock without an owner, as a clause; `nil` for other kinds.
    var end: String? { lockWords[self]?.end }

    /// Returns the lock as a phrase: an article, the noun and the app's label.
    package func named(_ label: String?) -> String {
        let noun = lockWords[self]?.noun ?? "a futex"
        guard let label else { return noun }
        if self == .dispatchQueue, label == Self.mainQueueLabel { return "the main queue" }
        return self == .swiftTaskStatus ? "\(noun) \(label)" : "\(noun) \"\(label)\""
    }

    /// libdispatch's own label of the main queue.
    package static let mainQueueLabel = "com.apple.main-thread"

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

// What shows why the owner of a lock has it.
extension StallReport {
    /// The app's innermost function on the stack of an owner of the cause's lock with its line, and what called it if that shows
    /// why the thread has the lock: `sleep() (Work.swift:3), called by the initializer of Cache.shared`; `nil` if unknown.
    func place(ofOwner index: Int) -> String? {
        guard let cause, let lock = cause.lock, lock.owners.indices.contains(index),
            let inner = place(of: lock.owners[index]), let stack = lock.owners[index].stack
        else { return nil }
        let owner = lock.owners[index]
        let frames = provenFrames(ofStack: stack)
        switch lock.held(byOwner: index) {
        case .once?, .dispatchOnce?:
            return inner + (frames.initializer.map { ", called by \($0)" } ?? "")
        case .dynamicLinker?: return inner + (linkerCall(in: frames) ?? "")
        default:
            // The last one is the stalled thread, or an owner that comes before, too.
            let same = lock.owners.first { $0.thread.id == owner.thread.id && $0.waitsFor != nil }
            let awaited = same?.waitsFor ?? lock.kind
            let waitsForMutex = cause.kind == .deadlock && AdviceRule.mutexes.contains(awaited)
            return waitsForMutex ? frames.way ?? inner : inner
        }
    }

    /// `, called by dlopen, which runs an initializer of libplugin.so`; `nil` if no call of the linker is on the stack.
    private func linkerCall(in frames: [Frame]) -> String? {
        guard let index = frames.firstIndex(where: { $0.linkerCall != nil }), let call = frames[index].linkerCall
        else { return nil }
        guard let own = frames.firstIndex(where: \.isPlaceOfApp), own < index else { return ", in \(call)" }
        let names = frames[..<index].map { frame in
            frame.image.flatMap { images.indices.contains($0) ? images[$0].name : nil } ?? ""
        }
        if call == "dlopen", let linker = names.firstIndex(where: { $0.hasPrefix("ld-") }), linker > own,
            !names[linker - 1].isEmpty
        {
            return ", called by dlopen, which runs an initializer of \(names[linker - 1])"
        }
        let caller = frames[index...].first(where: \.isPlaceOfApp)?.place
        return ", called by \(call)" + (caller.map { ", called by \($0)" } ?? "")
    }
}

extension StallReport.Frame {
    /// The function that keeps the dynamic linker's lock while it calls the app, if the frame is one.
    fileprivate var linkerCall: String? { ["dl_iterate_phdr", "dlopen", "dlclose"].first(where: isOfC) }

    /// Whether it is a library's function that runs an initialization once, such as `swift_once`.
    fileprivate var runsOnce: Bool {
        guard !isInApp, let symbol else { return false }
        return ["swift_once", "once_slow", "dispatch_once", "pthread_once"].contains { symbol.contains($0) }
    }

    /// The type of a method: `Store` of `Store.save(_:)`; `nil` of a function and a closure.
    fileprivate var typeName: Substring? {
        guard let name = function?.prefix(while: { $0 != "(" }), !name.contains(" "),
            let dot = name.lastIndex(of: ".")
        else { return nil }
        return name[..<dot]
    }
}

extension Sequence<StallReport.Frame> {
    /// The app's innermost function of these frames with its line, and its first caller of another type: a method may be that
    /// of a lock's wrapper.
    var way: String? {
        let own = filter(\.isPlaceOfApp)
        guard let first = own.first, let place = first.place else { return nil }
        guard let type = first.typeName, let caller = own.first(where: { $0.typeName != type })?.place else {
            return place
        }
        return "\(place), called by \(caller)"
    }
}

extension [StallReport.Frame] {
    /// What a one-time initialization on the stack runs: `the initializer of Cache.shared`, or its outermost function with
    /// the line.
    ///
    /// `nil` if no initialization is known, if there are several, or if the app's innermost function is the initializer.
    var initializer: String? {
        guard let first = firstIndex(where: \.runsOnce), let last = lastIndex(where: \.runsOnce),
            !self[first...last].contains(where: \.isInApp)
        else { return nil }
        let own = self[..<first].filter(\.isPlaceOfApp)
        guard let inner = own.first, let outer = own.last else { return nil }
        let suffix = ".unsafeMutableAddressor"
        if last + 1 < count, let accessor = self[last + 1].function, accessor.hasSuffix(suffix) {
            return "the initializer of \(accessor.dropLast(suffix.count))"
        }
        return outer == inner ? nil : outer.place
    }
}

extension String {
    /// A function that waits as the app calls it; of Dispatch without labels: a wait with one time limit jumps to another.
    var asCalled: String {
        if hasPrefix("_MutexHandle.") { return "Mutex.withLock" }
        if hasPrefix("dispatch_sema4_") { return "dispatch_semaphore_wait" }
        return hasPrefix("Dispatch") ? String(prefix { $0 != "(" && $0 != "<" }) : self
    }
}

extension StallReport.Lock {
    /// ``function`` as the app calls it.
    package var calledFunction: String? { function?.asCalled }

    /// What an owner of the chain holds: what the one before it waits for.
    func held(byOwner index: Int) -> StallReport.LockKind? { index == 0 ? kind : owners[index - 1].waitsFor }

    /// The words before an owner: a thread that is joined holds nothing.
    package func leadOfOwner(_ index: Int) -> String {
        held(byOwner: index) == .threadJoin ? "waited for" : "held by"
    }

    /// The owners in the cycle that the last one closes: all of them, if the last one is the stalled thread.
    ///
    /// If it is an owner that comes before, too, the stalled thread and the owners up to there only wait for the cycle.
    var cycle: ArraySlice<StallReport.LockOwner> {
        let first = owners.dropLast().firstIndex { $0.thread.id == owners.last?.thread.id }
        return owners[(first.map { $0 + 1 } ?? 0)...]
    }

    /// `waits in pthread_mutex_lock for the mutex, which thread 4711 holds`.
    var waitInWords: String {
        let place = calledFunction.map { " in \($0)" } ?? ""
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

extension StallReport.LockOwner {
    /// Whether waiting for a CPU is what the thread did: see ``StallReport/OwnerTime``.
    package var isStarved: Bool {
        guard let time, time.observedMilliseconds > 0 else { return false }
        return time.runQueueMilliseconds >= time.observedMilliseconds * StallReport.OwnerTime.starvedShare
    }

    /// Whether the thread was blocked for most of the observed time, whatever it did at the last look.
    var wasMostlyBlocked: Bool { time.map { $0.blockedMilliseconds > $0.observedMilliseconds / 2 } ?? false }

    /// Whether the thread was on a CPU for most of the observed time, whatever it did at the last look.
    package var wasMostlyComputing: Bool { time.map { $0.onCPUMilliseconds > $0.observedMilliseconds / 2 } ?? false }

    /// What the thread did, as a phrase that follows its name: `is running`, `waits for the mutex`.
    package var doing: String {
        if isStarved, let time {
            return "waited for a CPU for \(time.runQueueMilliseconds.whole) of "
                + "\(time.observedMilliseconds.whole) ms" + (priorityInversion?.inWords ?? "")
        }
        if isRunning, wasMostlyBlocked, let time {
            return "was blocked for \(time.blockedMilliseconds.whole) of "
                + "\(time.observedMilliseconds.whole) ms"
        }
        if isRunning, let time, time.runQueueMilliseconds >= 1,
            time.runQueueMilliseconds * 3 >= time.observedMilliseconds
        {
            return "was on a CPU for \(time.onCPUMilliseconds.whole) and waited for one for "
                + "\(time.runQueueMilliseconds.whole) of the \(time.observedMilliseconds.whole) ms for which it was seen"
        }
        if isRunning { return "is running" }
        if wasMostlyComputing, let time {
            return "was on a CPU for \(time.onCPUMilliseconds.whole) of \(time.observedMilliseconds.whole) ms"
        }
        if waitsFor != nil { return "waits for \(awaitedName)" }
        return systemCall.map { "is in \($0)" } ?? "is waiting"
    }
}

extension StallReport.PriorityInversion {
    fileprivate var inWords: String {
        " (priority inversion: its nice value is \(nice), that of the stalled thread \(waiterNice))"
    }
}

extension StallReport.OwnerTime {
    /// For how long it computed, and of which time, if that is more: `133 of the 223 ms for which it was seen`.
    var computingInWords: String {
        onCPUMilliseconds >= observedMilliseconds * 0.8
            ? "\(onCPUMilliseconds.whole) ms"
            : "\(onCPUMilliseconds.whole) of the \(observedMilliseconds.whole) ms for which it was seen"
    }

    /// Whether it was blocked for a fifth of the time or more, which may have been in another place.
    var wasAlsoBlocked: Bool { blockedMilliseconds >= observedMilliseconds * 0.2 }
}
