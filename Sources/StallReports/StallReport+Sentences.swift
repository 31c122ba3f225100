extension StallReport.Cause {
    /// Says how long the thread waited or ran, where, and for what, by the cause's other fields alone.
    package var sentence: String { sentence(naming: CauseNames()) }

    /// Whether the host of the virtual machine took the CPU for half of the time without one.
    package var isStolen: Bool {
        let stolen = stolenMilliseconds ?? 0
        return kind == .cpuContention && stolen > 0 && stolen * 2 >= runQueueMilliseconds
    }

    /// Whether nearly all of the CPU time was in the call: else its time is not known, and no number names it.
    private var computesInCall: Bool { callShare ?? 0 >= 0.9 }

    /// Whether the wait that is described took half of the blocked time or more.
    package var describesMost: Bool { waitMilliseconds.map { $0 * 2 >= blockedMilliseconds } ?? true }

    fileprivate func sentence(naming names: CauseNames) -> String {
        (words(naming: names) + names.handler).withoutControls
    }

    private func words(naming names: CauseNames) -> String {
        let waited = rest(blockedMilliseconds, "blocked")
        let wait = names.wait.map { otherCall == nil ? ", in \($0)" : ", called by \($0)" } ?? ""
        let again = repeatsOtherCall ? ", again and again" : ""
        let blockedToo = waited + (otherCall.map { "\(again), in \($0)" } ?? "") + (waited.isEmpty ? "" : wait)
        // What else the thread did for a part of the time that is worth a word, while it mostly waited.
        let restOfWait =
            (otherCall.map { "; for a part of that in \($0)" } ?? "") + rest(onCPUMilliseconds, "on CPU")
            + (onCPUMilliseconds > blockedMilliseconds / 2 ? names.work : "")
            + rest(runQueueMilliseconds, "waiting for a CPU")
        let all = (onCPUMilliseconds + runQueueMilliseconds + blockedMilliseconds).whole
        let blocked = "\(blockedMilliseconds.whole) of \(all) ms"
        // Several waits: only one is described.
        let part = waitMilliseconds.map { ", about \($0.whole) ms of that" } ?? ""
        let waitTime = blocked + part
        let ready = "\(runQueueMilliseconds.whole) of \(all) ms"
        switch kind {
        case .cpu:
            let others = rest(runQueueMilliseconds, "waiting for a CPU") + blockedToo
            if let systemCall, computesInCall, let kernelShare, kernelShare >= 0.5,
                (onCPUMilliseconds * kernelShare).whole * 2 >= all
            {
                let target = systemCall.target.map { " of \($0)" } ?? ""
                let kernel = (onCPUMilliseconds * kernelShare).whole
                return "In \(systemCall.name)(2)\(target) for \(kernel) of \(all) ms, "
                    + "\(systemCall.copiesData ? "likely copying" : "running") in the kernel\(others)."
            }
            let kernel = kernelShare.flatMap { $0 >= 0.5 ? ", \($0.percent) of it in the kernel" : nil } ?? ""
            return "On CPU for \(onCPUMilliseconds.whole) of \(all) ms\(kernel)\(names.work)\(others)."
        case .cpuContention:
            let stolen = (stolenMilliseconds ?? 0).whole
            let user =
                isStolen
                ? "the host of the virtual machine did not run a CPU of it for \(stolen) ms"
                : (usableProcessors.map { "the thread may use \($0.usable) of \($0.online) CPUs, where others ran" }
                    ?? "other threads used the CPUs") + (competitors?.inWords ?? " (whose is not known)")
            let computed = rest(onCPUMilliseconds, "on CPU")
            let work = computed.isEmpty || onCPUMilliseconds < runQueueMilliseconds / 3 ? "" : names.work
            return "Ready to run but without a CPU for \(ready): \(user)\(computed)\(work)\(blockedToo)."
        case .throttled:
            if let throttledMilliseconds, throttledMilliseconds < runQueueMilliseconds * 0.9 {
                let most = throttledMilliseconds.whole
                return
                    "Ready to run but without a CPU for \(ready); its cgroup had used up its CPU quota, and was stopped for "
                    + "\(most) ms (over all CPUs, not counting a period that had not ended)\(blockedToo)."
            }
            return "Ready to run but throttled for \(ready): its cgroup had used up its CPU quota\(blockedToo)."
        case .paging:
            let file = pagedFile.map { ", the last one for \($0)" } ?? ""
            let kernel = (onCPUMilliseconds * (kernelShare ?? 0)).whole
            let handling = kernel * 10 >= all ? ", and ran in the kernel for \(kernel) ms" : ""
            let waiting = waitMilliseconds ?? blockedMilliseconds
            let others = rest(blockedMilliseconds - waiting, "blocked otherwise")
            let pages = "Waited for memory pages for \(waiting.whole) of \(all) ms\(handling)"
            // One that still waits is not counted yet.
            if majorFaults == 0 {
                let place = waitChannel.map { " in \($0)" } ?? ""
                return "\(pages)\(place), though no finished page fault was a major one\(others)."
            }
            // Compressed memory and files without a disk count, too; before Linux 6.6 also userfaultfd(2).
            let faults = majorFaults == 1 ? "fault, likely a read" : "faults, likely reads"
            return "\(pages): \(majorFaults) major page \(faults) from a disk\(file)\(others)."
        case .sleep:
            let purpose = confidence == .possible ? "" : ": it likely polls, or is called again and again"
            return polls
                ? "Slept again and again, for \(blocked) in all\(part), in \(place)\(purpose)\(restOfWait)."
                : "Slept \(sleeps.map { "about \($0) times, " } ?? "")for \(waitTime) in \(place)\(restOfWait)."
        case .io
        where computesInCall && waitMilliseconds == nil && (kernelShare ?? 0) >= 0.5
            && onCPUMilliseconds * 4 >= blockedMilliseconds:
            return "Blocked for \(blockedMilliseconds.whole) ms and on CPU for "
                + "\(onCPUMilliseconds.whole) of \(all) ms in \(place)\(peers(of: systemCall))"
                + "\(rest(runQueueMilliseconds, "waiting for a CPU"))."

        case .io, .syscall:
            if names.awaitsProcess, systemCall.map({ StallReport.loopWaits.contains($0.name) }) == true {
                return "Blocked for \(waitTime) in Process.waitUntilExit(), until that process ends"
                    + "\(peers(of: systemCall))\(restOfWait)."
            }
            if let resolver = names.resolver, let target = systemCall?.target, target.hasPrefix("socket to ") {
                // Names may also come from a cache (nscd), from Avahi, or from a directory.
                let role = target.hasSuffix(":53") ? "the name server " : ""
                let server = target.dropFirst("socket to ".count)
                return "Blocked for \(waitTime) in \(resolver), which waits for \(role)\(server)\(restOfWait)."
            }
            return "Blocked for \(waitTime) in \(place)\(peers(of: systemCall))\(restOfWait)."
        case .lock:
            return "Blocked for \(waitTime) in \(lock.map { lockWait($0, names) } ?? place)\(restOfWait)."
        case .deadlock:
            return lock.map { deadlock($0, names) }
                ?? "Waits for a global whose initializer needs the same global or what this thread holds, and Swift's "
                + "runtime tries again and again."
        default:
            return "Blocked for \(blocked), in waits that no sample caught."
        }
    }

    /// Another part of the time, if it is a tenth or more.
    private func rest(_ milliseconds: Double, _ activity: String) -> String {
        let all = onCPUMilliseconds + runQueueMilliseconds + blockedMilliseconds
        return milliseconds * 10 >= all && all > 0 ? "; \(activity) for \(milliseconds.whole) ms" : ""
    }

    private var place: String {
        guard let systemCall else { return function ?? waitChannel ?? "a system call" }
        switch (systemCall.name, systemCall.target) {
        case (_, StallReport.SystemCall.signal): return "\(systemCall.name), until a signal arrives"
        case (let name, StallReport.SystemCall.emptySet): return "\(name) until a time limit: its set is empty"
        case (let name, _) where kind == .sleep && !AdviceRule.sleepCalls.contains(name):
            return "\(name), which waits for no descriptor"
        case (_, "anon_inode:[eventpoll]"): return "\(systemCall.name), for an event on one of its descriptors"
        case ("close", _) where lingers:
            return "close, which waits until the other end has confirmed the data (SO_LINGER)"
        // The call has removed the descriptor already.
        case ("close", let target?) where target.hasPrefix("descriptor "):
            return "close, which may wait until data is sent or written"
        default: return systemCall.description
        }
    }

    private func peers(of call: StallReport.SystemCall?) -> String {
        call?.peersInWords.map { "; \($0)" } ?? ""
    }

    private func lockWait(_ lock: StallReport.Lock, _ names: CauseNames) -> String {
        let name = lock.kind.named(lock.label)
        // The C library's inner functions, and its call of any system call, which may have no other frame, tell nothing.
        let inner = names.call.flatMap { $0.hasPrefix("__") || $0 == "syscall" ? nil : $0 }
        let call = inner?.asCalled
        if let end = lock.kind.end {
            let left = lock.entries.map {
                "\($0) \($0 == 1 ? "call" : "calls") of enter() or async(group:) \($0 == 1 ? "was" : "were") still open"
            }
            let address = lock.address.map { " at \($0)" } ?? ""
            let outcome =
                switch lock.endedByTimeLimit {
                case true?: ", by which the wait likely ended"
                case false?: ", before which the wait ended"
                case nil: " ends"
                }
            let limit = lock.hasTimeLimit == true ? ", or until a time limit\(outcome)" : ""
            // A work item has a group of its own, which the app has neither made nor entered.
            if let call, lock.kind == .dispatchGroup, StallReport.workItemWaits.contains(call) {
                return "\(call), until the work item has ended\(limit)"
            }
            // Foundation's condition, which no code of the app signals.
            if let wait = call?.prefix(while: { $0 != "(" }), StallReport.operationWaits.contains(String(wait)) {
                return "\(wait)(), until \(wait.hasPrefix("OperationQueue") ? "its operations have" : "it has") ended"
            }
            return "\(call ?? lock.calledFunction ?? "a wait for \(name)"), until \(end)\(address)\(limit): "
                + (left ?? "it does not record which thread that \(limit.isEmpty ? "will" : "would") be")
        }
        if lock.kind == .futex, names.awaitsIterations {
            return "\(call ?? "dispatch_apply"), until other threads have done its last iterations"
        }
        let unknown =
            switch lock.kind {
            case .pthreadMutex: "a pthread mutex"
            case .dispatchQueue: "a call of libdispatch"
            default: "futex"
            }
        let function = lock.kind == .file ? place : lock.calledFunction ?? call ?? unknown
        guard !lock.owners.isEmpty else {
            if lock.kind == .file, systemCall?.peers != nil { return function + peers(of: systemCall) }
            return "\(function), for \(name)" + (lock.reason.map { "; its owner is not known: \($0)" } ?? "")
        }
        let verb =
            switch lock.kind {
            case .threadJoin: "waits for the end of"
            case .once, .dispatchOnce: "\(name) is run by"
            default: "\(name) is held by"
            }
        // The call in which the last look met an owner that computed is not what it did.
        let last = lock.owners.last.flatMap { $0.wasMostlyComputing ? nil : $0.systemCall }
        return "\(function); \(verb) \(names.owner(0, of: lock)), which \(Self.chain(lock, names))" + peers(of: last)
    }

    private static let idle = "has no work: a task that is suspended, or code that has returned, has left it locked"

    /// Describes what the first owner does: it may wait for the second one, which may wait for the third, and so on.
    private static func chain(_ lock: StallReport.Lock, _ names: CauseNames) -> String {
        lock.owners.enumerated().map { index, owner in
            index < lock.owners.count - 1
                ? "waits for \(owner.awaited(of: names.owner(index + 1, of: lock))), which "
                : names.idle.contains(index) ? idle : owner.doing
        }.joined()
    }

    private func deadlock(_ lock: StallReport.Lock, _ names: CauseNames) -> String {
        guard lock.owners.count > 1 else {
            return "Waits for \(lock.kind.named(lock.label))" + (lock.owners.isEmpty ? "." : ", which it holds itself.")
        }
        let cycle = lock.cycle
        let first = lock.kind.named(lock.label, of: names.owner(0, of: lock))
        var text = "Waits\(cycle.startIndex == 0 ? " in a cycle" : "") for \(first)"
        for (index, before) in zip(lock.owners.indices.dropFirst(), lock.owners) {
            // A stalled thread outside of the cycle waits for the owner before it.
            let lead = index == cycle.startIndex ? "is in a deadlock: it waits" : "waits"
            let holdsItself = cycle.startIndex == index && cycle.count == 1
            let held = holdsItself ? "\(before.awaitedName), which it holds itself" : nil
            text += ", which \(lead) for \(held ?? before.awaited(of: names.owner(index, of: lock)))"
        }
        return text + "."
    }
}

/// The functions that a cause's sentence names, as far as the report's frames tell them.
private struct CauseNames {
    /// What the thread computed: `, in sort(by:), called by layOut(_:), called by refresh()`.
    private(set) var work = ""
    /// The app's function in which it waited for most of the time in which it was blocked.
    private(set) var wait: String?
    /// The library's function that the app's function called, in the wait that the cause shows.
    private(set) var call: String?
    /// The function of the C library that waits for a name server.
    private(set) var resolver: String?
    /// Whether the thread runs its loop until a process ends (`Foundation.Process.waitUntilExit()`).
    private(set) var awaitsProcess = false
    /// Whether the thread waits for the other threads of `concurrentPerform`.
    private(set) var awaitsIterations = false
    /// The app's function in which each owner of the lock is, with its line.
    private var owners: [String?] = []
    /// The name of each owner's thread.
    private var threads: [String] = []

    /// A sentence of its own where a signal handler did it.
    private(set) var handler = ""

    /// The indices of owners of the lock that are threads of libdispatch and wait for work.
    private(set) var idle: Set<Int> = []

    /// No names: those of a report that has none.
    init() {}

    /// A caller with a longer name, such as a closure in a closure, is left out.
    private static let longestCaller = 60
    /// The number of a function's lines that are named, the share of the time from which one is, and that which they need
    /// together and no line alone has.
    private static let (mostLines, leastLineShare, singleLineShare) = (3, 0.1, 0.6)

    init(_ report: StallReport) {
        let holders = report.cause?.lock?.owners ?? []
        owners = holders.indices.map { report.place(ofOwner: $0) }
        threads = holders.map { report.name(of: $0.thread, stack: $0.stack) }
        idle = Set(holders.indices.filter { report.isIdle(holders[$0]) })
        let frames = report.framesOfWait
        let functions = frames.compactMap(\.plainName)
        awaitsProcess = frames.awaitProcess
        awaitsIterations = frames.awaitIterations
        let called = frames.prefix { !$0.isInApp }.last { $0.isWritten }
        call = called.flatMap { $0.plainName }
        resolver = functions.last { StallReport.resolvers.contains($0) }
        work = Self.work(of: report).map { ", \($0)" } ?? ""
        wait = report.longestWait?.function
        handler =
            report.signalHandler.map {
                " It was in a signal handler" + ($0.interrupted.map { ", which interrupted \($0)." } ?? ".")
            } ?? ""
    }

    /// What most samples on a CPU show: `in` the culprit with its callee and its caller, or another function of the app.
    private static func work(of report: StallReport) -> String? {
        typealias Place = (stack: [Int], index: Int, share: Double)
        let frames = report.frames
        // One place for each stack, because thousands of samples may have the same.
        let shares = report.stackShares { $0.threadState == .running }.sorted { $0.key < $1.key }
        let places = shares.compactMap { number, share -> Place? in
            let stack = report.stacks[number].filter { frames[$0].isUncertain != true }
            let index =
                report.culprit.flatMap { culprit in stack.firstIndex { frames[$0].function == culprit.function } }
                ?? stack.firstIndex { frames[$0].isInApp && frames[$0].isWritten }
            // Who called a function without a name did not spend the time.
            return index.flatMap { frames[stack[$0]].function == nil ? nil : (stack, $0, share) }
        }
        func callee(_ place: Place) -> String? {
            place.stack[..<place.index].last { frames[$0].isWritten }.flatMap { frames[$0].plainName }
        }
        func function(_ place: Place) -> String? { frames[place.stack[place.index]].function }
        func share(where isIncluded: (Place) -> Bool) -> Double {
            places.reduce(0) { isIncluded($1) ? $0 + $1.share : $0 }
        }
        guard let longest = places.max(by: { $0.share < $1.share }) else { return nil }
        // Of all stacks: those without a function of the app tell of other work.
        let most = shares.reduce(0) { $0 + $1.value } / 2
        let blamed = function(longest)
        func caller(_ place: Place) -> String? {
            // Callers outside of the loop's callout only started the loop.
            let callers = place.stack[(place.index + 1)...].map { frames[$0] }
            let outer = callers[..<(callers.loopIndex ?? callers.endIndex)]
            return outer.first { $0.isInApp && $0.isWritten && ![nil, blamed, "main"].contains($0.function) }?.function
        }
        /// Returns the name that most samples have beside the blamed function; `nil` if they differ.
        func shared(_ name: (Place) -> String?) -> String? {
            let wanted = name(longest)
            return share { function($0) == blamed && name($0) == wanted } >= most ? wanted : nil
        }
        guard shared(function) != nil else { return nil }
        let told = shared(caller).flatMap { $0.count <= longestCaller ? $0 : nil }
        let inner = shared(callee)
        // The time in the sentence is that of all samples.
        let named = share { function($0) == blamed && (inner == nil || callee($0) == inner) }
        let lead = named < 2 * most * 0.9 ? "mostly in " : "in "
        let ownWork = inner == nil && lead == "in " ? places.filter { function($0) == blamed } : []
        func frees(_ place: Place) -> Bool { place.stack[..<place.index].contains { frames[$0].freesValues } }
        let lines = lines(ownWork.map { (frames[$0.stack[$0.index]].line, $0.share, frees($0)) })
        return lead + [inner, blamed.map { $0 + lines }, told].compactMap(\.self).joined(separator: ", called by ")
    }

    /// The lines of a function that had most of its time, if no single one had: ` (41 % at line 114, 32 % at line 113)`.
    ///
    /// A value is freed at the line after its last use, which need not have to do with it.
    private static func lines(_ parts: [(line: Int?, share: Double, frees: Bool)]) -> String {
        let all = parts.reduce(0) { $0 + $1.share }
        func freed(_ line: Int) -> String {
            let balance = parts.reduce(0) { $1.line == line ? $0 + ($1.frees ? $1.share : -$1.share) : $0 }
            return balance > 0 ? "freeing values " : ""
        }
        let shares = Dictionary(
            parts.map { ($0.line, $0.share / max(all, .leastNonzeroMagnitude)) }, uniquingKeysWith: +)
        let named = shares.filter { $0.value >= leastLineShare }
        let largest = named.sorted { ($1.value, $0.key ?? 0) < ($0.value, $1.key ?? 0) }.prefix(mostLines)
        guard shares[nil] == nil, largest.count > 1, largest[0].value < singleLineShare,
            largest.reduce(0, { $0 + $1.value }) >= singleLineShare
        else { return "" }
        let words = largest.compactMap { line, share in
            line.map { "\((share * 100).whole) % \(freed($0))at line \($0)" }
        }
        return " (\(words.joined(separator: ", ")))"
    }

    /// A lock's owner: `thread 4711 "worker" in save() (Store.swift:12)`.
    func owner(_ index: Int, of lock: StallReport.Lock) -> String {
        let place = owners.indices.contains(index) ? owners[index] : nil
        let thread = threads.indices.contains(index) ? threads[index] : lock.owners[index].thread.inWords
        return thread + (place.map { " in \($0)" } ?? "")
    }
}

extension StallReport {
    /// Functions of the C library that may query a name server.
    package static let resolvers: Set = [
        "getaddrinfo", "__GI_getaddrinfo", "getnameinfo", "gethostbyname", "gethostbyname2", "gethostbyname_r",
        "gethostbyaddr", "gethostbyaddr_r", "res_query", "res_search",
    ]

    /// Names the app's functions in the cause's sentence, unless the sentence is another one than that of `earlier`, the
    /// report with fewer names: then the app has written it, and the result is `false`.
    @discardableResult
    package mutating func nameCause(since earlier: StallReport) -> Bool {
        guard let cause, let before = earlier.cause,
            [before.sentence, before.sentence(naming: CauseNames(earlier))].contains(cause.summary)
        else { return false }
        let sentence = cause.sentence(naming: CauseNames(self))
        self.cause?.summary = sentence
        return true
    }
}

extension StallReport.Frame {
    /// Whether Swift's runtime frees a value in it.
    fileprivate var freesValues: Bool { symbol?.hasPrefix("swift_release") == true || symbol == "swift_arrayDestroy" }
}

extension StallReport.SystemCall: CustomStringConvertible {
    /// `fsync(/var/lib/wal)`, or the name alone.
    package var description: String { target.map { "\(name)(\($0))" } ?? name }

    /// Whether the call copies data between files or between a file and memory, as far as its name tells.
    ///
    /// The file system may decompress the data, or decrypt it.
    fileprivate var copiesData: Bool {
        // A driver or the kernel makes what these show.
        guard !isOfKernel, target?.hasPrefix("/dev/") != true else { return false }
        return [
            "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2",
            "copy_file_range", "sendfile", "splice", "process_vm_readv", "process_vm_writev",
        ].contains(name)
    }
}
