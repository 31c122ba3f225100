import StackCapture
import LinuxSupport
import StallReports

/// Concludes the cause of a stall from its evidence: a pure function, with every rule in this file.
///
/// 1. A cycle of lock owners that did not move is a `deadlock`, while it lasts.
/// 2. `paging`, if waiting for pages and handling their faults in the kernel take half of the time or more together.
/// 3. `io`, if waiting in one call for input or output and the kernel's work for the same call are the largest part
///    together, and a quarter of that is waiting or the call flushes to a disk.
/// 4. Otherwise the largest of the three parts of the time decides. CPU time wins if it is within ``tieMargin`` of the
///    largest part, because the app can act on it at once.
/// 5. On CPU: `paging`, if the major page faults at ``cpuPerMajorFault`` each, and the time in the kernel, explain half
///    of the time; else `cpu`.
/// 6. Run queue: `throttled`, if the cgroup's quota accounts for half of that time or more; else `cpuContention`.
/// 7. Blocked: the kind with the largest weight among the observations of a wait. An observation's weight is the time
///    that it stands for (``SampleWeights``). The observation of the place with the largest weight shows the cause. A wait
///    for a page is `paging`; a system call is `lock`, `sleep`, `io` or `syscall`, by
///    its purpose. An unknown call that was restarted after a signal counts only if there is no other wait.
/// 8. Blocked without an observed wait: `paging`, if the major page faults explain the time; else the kind with the
///    largest weight among observations in a libc function that waits for data; else `unknown`.
///
/// Where the system does not show the call of a wait, the kernel function stands for it, and where it does not count the
/// time without a CPU, a wait may be such time: then a blocked thread's cause is at most `likely`.
enum CauseRules {
    /// The share of the duration below which two parts count as equal.
    static let tieMargin = 0.05
    /// The least CPU time of a major page fault: the block layer and the copy of up to 16 pages take 20 to 100 us.
    static let cpuPerMajorFault: UInt64 = 20_000
    /// The largest CPU time of a major page fault (measured: 28,800 faults took 1,523 ms in the kernel, 53 us each).
    static let maximumCPUPerMajorFault: UInt64 = 100_000
    /// The longest wait of a major page fault, in nanoseconds: a spinning disk seeks in 10 ms.
    static let waitPerMajorFault: UInt64 = 10_000_000

    static func conclusion(from evidence: Evidence) -> Cause {
        var cause = mainCause(of: evidence)
        cause.other = otherWait(in: evidence, than: cause.observation)
        cause.waitTime = waitTime(in: evidence, of: cause)
        cause.callShare = (cause.observation?.call?.name).flatMap { callShare(of: $0, in: running(in: evidence)) }
        // A circle that something has broken was none that lasts for ever.
        if cause.kind != .deadlock { cause.observation?.lock?.isDeadlock = false }
        return cause
    }

    /// Returns the last observation of the system call of another wait that stands for a third of the time or more.
    private static func otherWait(in evidence: Evidence, than main: Observation?) -> Observation? {
        let waits = zip(evidence.observations, evidence.weights).filter { wait, _ in
            wait.activity.call.map { !$0.isRestarted && $0.name != main?.activity.call?.name } ?? false
        }
        let weights = waits.reduce(into: [:]) { $0[$1.0.activity.call?.name, default: 0] += $1.1 }
        guard let most = weights.max(by: { ($0.value, $0.key ?? "") < ($1.value, $1.key ?? "") }),
            min(most.value, evidence.split.blocked) * 3 >= evidence.split.duration
        else { return nil }
        return waits.last { $0.0.activity.call?.name == most.key }?.0
    }

    /// Returns the blocked time of the waits that look like the cause's; `nil` if that is nine tenths or more of all.
    private static func waitTime(in evidence: Evidence, of cause: Cause) -> UInt64? {
        let shown = cause.observation
        guard cause.kind == .paging || shown?.activity.call != nil else { return nil }
        func isAlike(_ wait: Observation) -> Bool {
            if cause.kind == .paging { return kind(of: wait) == .paging }
            guard let shown, wait.activity.call != nil else { return false }
            return wait.isAlike(shown)
        }
        let waits = zip(evidence.observations, evidence.weights).filter {
            $0.0.activity.call != nil || $0.0.activity == .faulting
        }
        let all = waits.reduce(0) { $0 + $1.1 }
        let alike = waits.reduce(0) { $0 + (isAlike($1.0) ? $1.1 : 0) }
        guard alike * 10 < all * 9 else { return nil }
        return UInt64(Double(evidence.split.blocked) * Double(alike) / Double(all))
    }

    private static func mainCause(of evidence: Evidence) -> Cause {
        if let deadlock = deadlock(evidence) { return deadlock }
        if let paging = paging(evidence) { return paging }
        if let transfer = transfer(evidence) { return transfer }
        let split = evidence.split
        let duration = Double(max(split.duration, 1))
        let largest = max(split.onCPU, split.runQueue, split.blocked)
        if Double(largest - split.onCPU) < duration * tieMargin {
            return onCPU(evidence, share: Double(split.onCPU) / duration)
        }
        if split.runQueue == largest {
            return withoutCPU(evidence, share: Double(split.runQueue) / duration)
        }
        return blocked(evidence, share: Double(split.blocked) / duration)
    }

    /// A deadlock, if a sample saw a circle of locks: for half of the time, if one of its waits ends by itself.
    ///
    /// One that the thread has left without such a wait was none: any thread may let go of most locks.
    private static func deadlock(_ evidence: Evidence) -> Cause? {
        let circles = zip(evidence.observations, evidence.weights).filter { $0.0.lock?.isDeadlock == true }
        guard let seen = circles.last?.0, let chain = seen.lock else { return nil }
        let waiting = circles.reduce(0) { $0 + $1.1 }
        let endsByItself = chain.lock.hasTimeout || chain.owners.contains { $0.waitsFor?.hasTimeout == true }
        let isLeft = evidence.goesOn || evidence.observations.last?.activity == .running
        guard endsByItself ? waiting * 2 >= evidence.split.duration : !isLeft else { return nil }
        return Cause(
            kind: .deadlock, confidence: endsByItself ? .likely : .certain, evidence: evidence, observation: seen)
    }

    private static func paging(_ evidence: Evidence) -> Cause? {
        guard evidence.majorFaults > 0 else { return nil }
        let split = evidence.split
        let kernel = UInt64(Double(split.onCPU) * (evidence.kernelShare ?? 0))
        let handling = min(kernel, evidence.majorFaults * maximumCPUPerMajorFault)
        let (winner, part) = mostSeen(in: evidence, kind(of:))
        let isForPages = winner == nil || winner?.kind == .paging
        let mostWaiting = evidence.majorFaults * waitPerMajorFault
        var waiting: UInt64 = 0
        if winner?.kind == .paging {
            waiting = min(UInt64(Double(split.blocked) * part), mostWaiting)
        } else if winner == nil, mostWaiting >= split.blocked {
            // No sample met a wait: the faults explain all of the waiting or none of it.
            waiting = split.blocked
        }
        let pages = handling + waiting
        let share = Double(pages) / Double(max(split.duration, 1))
        guard share >= 0.5, pages > split.onCPU - handling else { return nil }
        return Cause(
            kind: .paging, confidence: confidence(ofShare: share), evidence: evidence,
            observation: isForPages ? winner?.observation : nil)
    }

    private static func transfer(_ evidence: Evidence) -> Cause? {
        guard let busy = kernelCall(in: evidence), let call = busy.observation.call?.name else { return nil }
        let split = evidence.split
        let (winner, part) = mostSeen(in: evidence, kind(of:))
        let waits = winner?.kind == .io && winner?.observation.call?.name == call
        let flushes = SystemCall.flushes(call)
        // Where no wait was seen, a call that flushes is what waited.
        let waiting = waits ? UInt64(Double(split.blocked) * part) : flushes && winner == nil ? split.blocked : 0
        let working = UInt64(Double(split.onCPU) * (evidence.kernelShare ?? busy.share))
        // A call that copies from memory and hardly waits is work for the CPU. One that flushes to a disk is not.
        guard flushes || (waits && waiting >= working / 3) else { return nil }
        let sum = waiting + working
        guard sum > split.runQueue, sum * 2 >= split.onCPU + split.blocked else { return nil }
        return Cause(
            kind: .io, confidence: confidence(ofShare: Double(sum) / Double(max(split.duration, 1))),
            evidence: evidence, observation: waits ? winner?.observation : busy.observation)
    }

    private static func withoutCPU(_ evidence: Evidence, share: Double) -> Cause {
        let (half, confidence) = (evidence.split.runQueue / 2, confidence(ofShare: share))
        guard evidence.throttled >= half else {
            // The host's other machines may have used the CPU, and not this one's threads, or a quota that does not show
            // has stopped the thread. So has something, if fewer threads than CPUs were ready.
            let isDoubtful =
                evidence.stolen >= half || !evidence.seesQuotas || evidence.competitors?.areEnough == false
            return Cause(
                kind: .cpuContention, confidence: isDoubtful && confidence == .certain ? .likely : confidence,
                evidence: evidence)
        }
        // The kernel adds up the throttled time of all CPUs: some of it may be that of others.
        let isCertain = evidence.throttled / UInt64(max(evidence.processors, 1)) >= half
        return Cause(
            kind: .throttled, confidence: isCertain || confidence != .certain ? confidence : .likely, evidence: evidence
        )
    }

    private static func onCPU(_ evidence: Evidence, share: Double) -> Cause {
        let onCPU = evidence.split.onCPU
        // The kernel handles a fault: what it took in all, if that is known, is the most that the faults took.
        let kernel = evidence.kernelShare.map { UInt64(Double(onCPU) * $0) } ?? onCPU
        let faults = min(evidence.majorFaults * cpuPerMajorFault, kernel)
        let isPaging = evidence.majorFaults > 0 && faults >= onCPU / 2
        return Cause(
            kind: isPaging ? .paging : .cpu, confidence: isPaging ? .likely : confidence(ofShare: share),
            evidence: evidence,
            observation: kernelCall(in: evidence)?.observation ?? lastRunning(in: evidence))
    }

    /// Returns the last observation of a running thread without its call, which does not stand for the time.
    private static func lastRunning(in evidence: Evidence) -> Observation? {
        var last = evidence.observations.last { $0.activity == .running }
        last?.call = nil
        return last
    }

    /// The calls that wait for a lock, a time or an event, and hardly compute.
    private static let onlyWaiting: Set = [
        "futex", "futex_waitv", "flock", "semop", "semtimedop", "nanosleep", "clock_nanosleep", "poll", "ppoll",
        "select", "pselect6",
    ]

    /// Returns the last observation of a running thread in the system call that has most of the weight of all such
    /// observations, with that share; `nil` if no call has.
    ///
    /// A call that only waits takes no CPU: seen once, it is the one at which a stop met a thread that came from another one.
    private static func kernelCall(in evidence: Evidence) -> (observation: Observation, share: Double)? {
        let observed = running(in: evidence)
        let shares = Set(observed.compactMap(\.0.call?.name)).map { call in
            (call: call, share: callShare(of: call, in: observed) ?? 0)
        }
        guard let most = shares.max(by: { ($0.share, $0.call) < ($1.share, $1.call) }), most.share >= 0.5,
            let last = observed.last(where: { $0.0.call?.name == most.call }),
            observed.count(where: { $0.0.call?.name == most.call }) > 1 || !onlyWaiting.contains(most.call)
        else { return nil }
        return (last.0, most.share)
    }

    /// Returns the observations of a running thread, with their weights.
    private static func running(in evidence: Evidence) -> [(Observation, UInt64)] {
        zip(evidence.observations, evidence.weights).filter { $0.0.activity == .running }
    }

    /// Returns the share of the weight of a running thread's observations that show a call; `nil` if none does.
    ///
    /// A thread that was stopped in the call's libc function, just before or after the call, counts as in the call.
    private static func callShare(of call: String, in running: [(Observation, UInt64)]) -> Double? {
        let all = running.reduce(0) { $0 + $1.1 }
        let own = running.reduce(0) { $0 + (($1.0.call?.name ?? $1.0.function) == call ? $1.1 : 0) }
        return own > 0 ? Double(own) / Double(all) : nil
    }

    private static func blocked(_ evidence: Evidence, share: Double) -> Cause {
        var (winner, part) = mostSeen(in: evidence, kind(of:))
        if winner == nil {
            (winner, part) = mostSeen(in: evidence) { $0.activity.call?.isRestarted == true ? .syscall : nil }
        }
        guard let winner else {
            if evidence.majorFaults * waitPerMajorFault >= evidence.split.blocked {
                return Cause(kind: .paging, confidence: .likely, evidence: evidence)
            }
            // Many short waits are rarely observed, but the libc function around them is.
            let (between, _) = mostSeen(in: evidence) { $0.function.map(SystemCall.waitsForData) == true ? .io : nil }
            return Cause(
                kind: between?.kind ?? .unknown, confidence: .possible, evidence: evidence,
                observation: between?.observation)
        }
        // With many waits and few observations, the typical wait may be missing.
        let count = evidence.observations.count
        var isDoubtful = count < 3 && evidence.voluntarySwitches > UInt64(count) + 2
        if case .unknown? = winner.observation.lock?.lock.ownership { isDoubtful = true }
        if winner.observation.activity == .blocked || !evidence.countsRunQueue { isDoubtful = true }
        // Other waits outside of calls look alike, such as that of a cgroup above memory.high.
        if winner.kind == .paging {
            let isForPage = winner.observation.waitChannel.map(waitsForPage) ?? (evidence.pagedFile != nil)
            if evidence.majorFaults == 0 || !isForPage { isDoubtful = true }
        }
        let confidence = confidence(ofShare: min(share, part))
        return Cause(
            kind: winner.kind, confidence: isDoubtful && confidence == .certain ? .likely : confidence,
            evidence: evidence, observation: winner.observation)
    }

    /// Returns the kind with the largest weight and the best observation of the place that has the largest part of it,
    /// with the kind's share of the weight of all kinds, 0 to 1.
    private static func mostSeen(in evidence: Evidence, _ kind: (Observation) -> Cause.Kind?)
        -> (winner: (kind: Cause.Kind, observation: Observation)?, part: Double)
    {
        var weights: [Cause.Kind: UInt64] = [:]
        var places: [Cause.Kind: [Int?: (weight: UInt64, observation: Observation)]] = [:]
        for (observation, weight) in zip(evidence.observations, evidence.weights) {
            guard let kind = kind(observation) else { continue }
            weights[kind, default: 0] += weight
            let seen = places[kind]?[observation.place]
            places[kind, default: [:]][observation.place] = (
                (seen?.weight ?? 0) + weight, better(seen?.observation, observation)
            )
        }
        let total = weights.values.reduce(0, +)
        guard let most = weights.max(by: { ($0.value, $0.key.rawValue) < ($1.value, $1.key.rawValue) }),
            let place = places[most.key]?.values.max(by: {
                ($0.weight, $0.observation.time) < ($1.weight, $1.observation.time)
            })
        else { return (nil, 0) }
        // Without a whole stack it may show no lock, or another one: more of a stack in the same call stands for it.
        let shown = places[most.key]?.values
            .filter {
                $0.observation.shown > place.observation.shown && $0.observation.isSameCall(as: place.observation)
            }
            .max { ($0.weight, $0.observation.time) < ($1.weight, $1.observation.time) }
        return ((most.key, (shown ?? place).observation), Double(most.value) / Double(max(total, 1)))
    }

    /// Returns whether the kernel function waits for a page, by its names in Linux 5.4 to 6.18.
    private static func waitsForPage(_ channel: String) -> Bool {
        ["folio_wait", "folio_lock", "wait_on_page", "lock_page"].contains { channel.contains($0) }
    }

    private static func kind(of observation: Observation) -> Cause.Kind? {
        switch observation.activity {
        case .running: nil
        case .blocked: observation.waitChannel.flatMap(WaitChannel.purpose(ofFunction:))
        // The kernel makes a thread that writes to mapped files wait for the disk.
        case .faulting where observation.waitChannel?.hasPrefix("balance_dirty_pages") == true: .io
        case .faulting, .waiting: Cause.Kind(of: observation.activity)
        }
    }

    /// Returns the observation that knows more of a lock, as one after the wait shows none, or of the other processes of
    /// the same call, as the search for them may not end; of equal ones, the later.
    private static func better(_ old: Observation?, _ new: Observation) -> Observation {
        guard let old else { return new }
        let (before, after) = (knownParts(of: old.lock), knownParts(of: new.lock))
        if before != after { return before > after ? old : new }
        if old.isSameCall(as: new), old.call?.peers != nil, new.call?.peers == nil { return old }
        // Of two observations of owners that do the same, the one with more stacks tells more; else the later one does.
        let (owners, later) = (old.lock?.owners ?? [], new.lock?.owners ?? [])
        let doSame = zip(owners, later).allSatisfy {
            $0.isRunning == $1.isRunning && $0.systemCall?.name == $1.systemCall?.name
        }
        return doSame && owners.count { $0.stack != nil } > later.count { $0.stack != nil } ? old : new
    }

    private static func knownParts(of lock: LockChain?) -> (Int, Int, Int) {
        let owners = lock?.owners ?? []
        // What an owner does is known by its call or its stack.
        return (lock == nil ? 0 : 1, owners.count, owners.count { $0.systemCall != nil || $0.stack != nil })
    }

    /// Returns `certain` for nearly all of the time, and `possible` for less than half.
    private static func confidence(ofShare share: Double) -> StallReport.Confidence {
        share >= 0.75 ? .certain : share >= 0.5 ? .likely : .possible
    }
}

extension Cause.Kind {
    /// The kind of stall that a thread's activity causes; `nil` for restart_syscall(2), which does not show the restarted
    /// call, and for a call that the system does not show.
    init?(of activity: ThreadActivity) {
        switch activity {
        case .blocked: return nil
        case .running: self = .cpu
        case .faulting: self = .paging
        case .waiting(let call):
            if call.isRestarted { return nil }
            self = call.purpose
        }
    }
}
