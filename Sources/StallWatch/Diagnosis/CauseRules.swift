/// Names the cause of a stall: a pure function of what was read, with every rule in this file.
///
/// 1. A circle of owners that did not move is a `deadlock`.
/// 2. `paging`, if waiting for pages and handling their faults in the kernel take half of the time or more together.
/// 3. Else the largest of the three parts of the time decides. Where CPU time is within ``tieMargin`` of the duration from
///    the largest, it wins: it is the part that the app can do something about at once.
/// 4. On CPU: `cpu`; but `paging`, if so many page faults went to a disk that each would have had ``cpuPerMajorFault`` of
///    the time.
/// 5. Run queue: `throttled`, if the cgroup's quota kept it from running for half of that time or more, else `cpuContention`.
/// 6. Blocked: what most of the looks that met it waiting saw, each counting for the time since the look before:
///    a page of memory is `paging`; a call, by its purpose, is `lock`, `sleep`, `io`, or `syscall` for all others. A call that
///    just goes on after a signal, and is not known, counts only if no other look met it waiting.
///    Without such a look: `paging`, if the faults that went to a disk explain the time; else what most of the looks
///    at the thread on CPU saw, if they met it in a function of libc that makes such a call; else `unknown`.
enum CauseRules {
    /// Parts that differ by less than this share of the duration are equal.
    static let tieMargin = 0.05
    /// A share that leaves nothing else to look at.
    static let nearlyAll = 0.75
    /// What one page fault costs a CPU if it goes to a disk: 20 to 100 us for the block layer, the file system and the
    /// copy of up to 16 pages around it.
    static let cpuPerMajorFault: UInt64 = 20_000
    /// The most that one page fault costs a CPU if it goes to a disk, with the copy of up to 16 pages around it.
    ///
    /// Measured: 28,800 faults took 1,523 ms in the kernel, 53 us each.
    static let maximumCPUPerMajorFault: UInt64 = 100_000
    /// What one page fault may wait for a disk: a spinning one seeks in 10 ms.
    static let waitPerMajorFault: UInt64 = 10_000_000

    static func judge(_ evidence: Evidence) -> CauseConclusion {
        if let deadlock = evidence.observations.last(where: { $0.lock?.isDeadlock == true }) {
            let endsByItself = deadlock.lock.map {
                $0.site.hasTimeout || $0.owners.contains { $0.waitsFor?.hasTimeout == true }
            }
            return CauseConclusion(
                kind: .deadlock, confidence: endsByItself == true ? .likely : .certain, observation: deadlock)
        }
        if let paging = paging(evidence) { return paging }
        let split = evidence.split
        let duration = Double(max(split.duration, 1))
        let largest = max(split.onCPU, split.runQueue, split.blocked)
        if Double(largest - split.onCPU) < duration * tieMargin {
            return onCPU(evidence, share: Double(split.onCPU) / duration)
        }
        if split.runQueue == largest {
            let confidence = confidence(ofShare: Double(split.runQueue) / duration)
            return CauseConclusion(
                kind: evidence.throttled >= split.runQueue / 2 ? .throttled : .cpuContention, confidence: confidence
            )
        }
        return blocked(evidence, share: Double(split.blocked) / duration)
    }

    /// Paging, if waiting for pages and handling their faults in the kernel are together the largest part of the time.
    private static func paging(_ evidence: Evidence) -> CauseConclusion? {
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
        return CauseConclusion(
            kind: .paging, confidence: confidence(ofShare: share), observation: isForPages ? winner?.observation : nil)
    }

    private static func onCPU(_ evidence: Evidence, share: Double) -> CauseConclusion {
        let isPaging = evidence.majorFaults > 0 && evidence.majorFaults * cpuPerMajorFault >= evidence.split.onCPU / 2
        return CauseConclusion(
            kind: isPaging ? .paging : .cpu, confidence: isPaging ? .likely : confidence(ofShare: share),
            observation: evidence.observations.last { $0.activity == .running }
        )
    }

    private static func blocked(_ evidence: Evidence, share: Double) -> CauseConclusion {
        var (winner, part) = mostSeen(in: evidence, kind(of:))
        if winner == nil { (winner, part) = mostSeen(in: evidence, kindOfRestarted(in:)) }
        guard let winner else {
            if evidence.majorFaults * waitPerMajorFault >= evidence.split.blocked {
                return CauseConclusion(kind: .paging, confidence: .likely)
            }
            // Waits that are many and short are seldom met, but what is between them is.
            let between = mostSeen(in: evidence, kindOfFunction(in:)).winner
            return CauseConclusion(
                kind: between?.kind ?? .unknown, confidence: .possible, observation: between?.observation)
        }
        var certainty = min(confidence(ofShare: share), confidence(ofShare: part))
        // Many waits and few looks: the looks may not have met the typical one.
        if evidence.voluntarySwitches > UInt64(evidence.observations.count) + 2, evidence.observations.count < 3 {
            certainty = min(certainty, .likely)
        }
        if case .unknown? = winner.observation.lock?.site.ownership { certainty = min(certainty, .likely) }
        return CauseConclusion(kind: winner.kind, confidence: certainty, observation: winner.observation)
    }

    /// The kind that looks saw for the longest time, with the look that shows it best, and its part of the time of all
    /// kinds that were seen.
    private static func mostSeen(in evidence: Evidence, _ kind: (Observation) -> Cause.Kind?)
        -> (winner: (kind: Cause.Kind, observation: Observation)?, part: Double)
    {
        var seen: [Cause.Kind: (weight: UInt64, observation: Observation)] = [:]
        var previous = evidence.start
        for observation in evidence.observations {
            let weight = observation.time - min(previous, observation.time)
            previous = observation.time
            guard let kind = kind(observation) else { continue }
            seen[kind] = ((seen[kind]?.weight ?? 0) + weight, better(seen[kind]?.observation, observation))
        }
        let total = seen.values.reduce(0) { $0 + $1.weight }
        guard let most = seen.max(by: { ($0.value.weight, $0.key.rawValue) < ($1.value.weight, $1.key.rawValue) })
        else { return (nil, 0) }
        return ((most.key, most.value.observation), Double(most.value.weight) / Double(max(total, 1)))
    }

    private static func kind(of observation: Observation) -> Cause.Kind? {
        if case .running = observation.activity { return nil }
        if case .waiting(let call) = observation.activity, let purpose = observation.call?.purpose {
            return call.isRestarted ? nil : Cause.Kind(purpose)
        }
        return Cause.Kind(of: observation.activity)
    }

    private static func kindOfRestarted(in observation: Observation) -> Cause.Kind? {
        guard case .waiting(let call) = observation.activity, call.isRestarted else { return nil }
        return .syscall
    }

    private static func kindOfFunction(in observation: Observation) -> Cause.Kind? {
        observation.function.flatMap(SystemCall.Purpose.init(ofFunction:)).map(Cause.Kind.init)
    }

    /// The look that tells more: the one that knows more owners; of equals, the later.
    private static func better(_ old: Observation?, _ new: Observation) -> Observation {
        guard let old else { return new }
        return (old.lock?.owners.count ?? 0) > (new.lock?.owners.count ?? 0) ? old : new
    }

    private static func confidence(ofShare share: Double) -> Cause.Confidence {
        if share >= nearlyAll { return .certain }
        return share >= 0.5 ? .likely : .possible
    }
}

extension Cause.Kind {
    /// The kind of stall that a thread's activity is the cause of; `nil` for a call that only goes on after a signal.
    init?(of activity: ThreadActivity) {
        switch activity {
        case .running: self = .cpu
        case .faulting: self = .paging
        case .waiting(let call):
            if call.isRestarted { return nil }
            self = Cause.Kind(call.purpose)
        }
    }

    /// The cause that waiting for that purpose is.
    fileprivate init(_ purpose: SystemCall.Purpose) {
        switch purpose {
        case .lock: self = .lock
        case .sleep: self = .sleep
        case .io: self = .io
        case .other: self = .syscall
        }
    }
}
