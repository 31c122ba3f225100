import LinuxSupport
import StackCapture
import StallReports

extension StallReport.Cause {
    /// Creates a report's cause; `stack` adds a stack to the report's tables and returns its index.
    init(_ cause: Cause, stack: (CapturedStack, ImageList) -> Int) {
        let evidence = cause.evidence
        let observation = cause.observation
        self.init(
            kind: cause.kind,
            confidence: cause.confidence,
            onCPUMilliseconds: milliseconds(evidence.split.onCPU),
            runQueueMilliseconds: milliseconds(evidence.split.runQueue),
            blockedMilliseconds: milliseconds(evidence.split.blocked),
            uncertaintyMilliseconds: milliseconds(evidence.split.uncertainty)
        )
        kernelShare = evidence.kernelShare?.toThousandths
        callShare = cause.callShare?.toThousandths
        minorFaults = evidence.minorFaults
        majorFaults = evidence.majorFaults
        voluntarySwitches = evidence.voluntarySwitches
        involuntarySwitches = evidence.involuntarySwitches
        throttledMilliseconds =
            evidence.throttled == 0 ? nil : milliseconds(min(evidence.throttled, evidence.split.duration))
        stolenMilliseconds = evidence.stolen == 0 ? nil : milliseconds(evidence.stolen)
        if cause.kind == .cpuContention, evidence.competitors?.areEnough == true { competitors = evidence.competitors }
        if cause.kind == .cpuContention, 1..<evidence.processors ~= evidence.usableProcessors {
            usableProcessors = .init(usable: evidence.usableProcessors, online: evidence.processors)
        }
        pagedFile = evidence.pagedFile
        systemCall = observation?.call
        otherCall = cause.other?.call
        waitMilliseconds = cause.waitTime.map(milliseconds)
        function = observation?.function
        waitChannel = observation?.waitChannel
        kernelStack = observation?.kernelStack
        lock = (observation?.lock).map { wait in StallReport.Lock(wait) { stack($0, wait.images) } }
        pressure = cause.pressure.map {
            StallReport.Pressure(cpuSomeAvg10: $0.cpu, ioSomeAvg10: $0.io, memorySomeAvg10: $0.memory)
        }
        summary = sentence
    }
}

extension StallReport.Lock {
    static func awaited(in wait: ThreadWait, of record: StallRecord) -> StallReport.Lock? {
        guard let lock = wait.lock else { return nil }
        var ownership = LockChain(lock: lock, isDeadlock: wait.isDeadlock)
        if case .thread(let id) = lock.ownership { ownership.owners = [owner(id, in: record)] }
        return StallReport.Lock(ownership) { _ in 0 }
    }

    private static func owner(_ id: Int32, in record: StallRecord) -> LockChain.Owner {
        let captured = record.otherThreads.first { $0.thread.id == id }
        var thread = captured?.thread ?? ThreadIdentity(id: id, name: nil)
        if let ofLoop = record.loop.thread, ofLoop.id == id { thread.name = ofLoop.name }
        let stack = try? captured?.stack.get()
        return LockChain.Owner(thread: thread, isRunning: stack?.threadState == .running)
    }

    init(_ chain: LockChain, stack: (CapturedStack) -> Int) {
        let holders = chain.owners.map { owner in
            var described = StallReport.LockOwner(thread: .init(owner.thread), isRunning: owner.isRunning)
            described.stack = owner.stack.map(stack)
            described.systemCall = owner.systemCall
            described.waitsFor = owner.waitsFor?.kind
            described.waitsForAddress = (owner.waitsFor?.address).map { .init($0) }
            described.waitsForLabel = owner.waitsFor?.label
            return described
        }
        self.init(kind: chain.lock.kind, isDeadlock: chain.isDeadlock, owners: holders)
        address = chain.lock.address == 0 ? nil : .init(chain.lock.address)
        function = chain.lock.function
        (label, entries) = (chain.lock.label, chain.lock.entries)
        hasTimeLimit = chain.lock.hasTimeout ? true : nil
        endedByTimeLimit = chain.endedByLimit
        switch chain.lock.ownership {
        case .thread, .process: break
        case .none: reason = "this kind has no owner"
        case .unknown(let why): reason = why
        }
        guard let time = chain.lastOwnerTime, let last = owners.indices.last else { return }
        owners[last].time = .init(
            observedMilliseconds: milliseconds(time.split.duration), onCPUMilliseconds: milliseconds(time.split.onCPU),
            runQueueMilliseconds: milliseconds(time.split.runQueue))
        guard time.isPriorityInversion, let nice = time.nice, let waiterNice = time.waiterNice else { return }
        // The queue of a chain's last lock is the one that its owner runs.
        let lock = chain.owners.dropLast().last?.waitsFor ?? chain.lock
        owners[last].priorityInversion = .init(
            nice: Int(nice), waiterNice: Int(waiterNice), queue: lock.kind == .dispatchQueue ? lock.label : nil)
    }
}

extension StallReport.History {
    /// The largest number of turns of each loop that did not stall.
    static let maximumOtherTurns = 32

    /// Describes what the loops did around a stall that has lasted for `duration` nanoseconds.
    init(_ leadUp: LeadUp, duration: UInt64) {
        let now = leadUp.start &+ duration
        let own = StallReport.LoopHistory(leadUp.own, limit: TurnHistory.capacity, start: leadUp.start, now: now)
        let others = leadUp.others.map {
            StallReport.LoopHistory($0, limit: Self.maximumOtherTurns, start: leadUp.start, now: now)
        }
        self.init(
            windowMilliseconds: milliseconds(LeadUp.window), loops: [own] + others,
            omittedLoops: leadUp.omittedLoops == 0 ? nil : leadUp.omittedLoops
        )
    }
}

extension StallReport.LoopHistory {
    fileprivate init(_ loop: LoopTurns, limit: Int, start: UInt64, now: UInt64) {
        // A turn that began after the stall had ended tells nothing about it.
        let turns = loop.turns.filter { $0.began <= now }
        self.init(
            label: loop.label, kind: loop.kind,
            turns: turns.suffix(limit).map { StallReport.Turn($0, start: start, now: now) },
            omitsOlderTurns: loop.isCut || turns.count > limit ? true : nil
        )
    }
}

extension StallReport.Turn {
    fileprivate init(_ turn: TurnHistory.Turn, start: UInt64, now: UInt64) {
        let end = turn.ended ?? max(now, turn.began)
        self.init(
            atMilliseconds: turn.began < start ? -milliseconds(start - turn.began) : milliseconds(turn.began - start),
            durationMilliseconds: milliseconds(end - min(turn.began, end)),
            waitedMilliseconds: milliseconds(turn.waited), isOngoing: turn.ended == nil ? true : nil
        )
    }
}

extension StallReport {
    /// Adds what the thread worked on for most of the stall, or why that is unknown; of a pool, the first worker's.
    mutating func addContext(of record: StallRecord, missing reason: String?) {
        let weights = record.samples.weights(duration: record.duration)
        var times: [CapturedContext?: UInt64] = [:]
        var dominant: (stack: CapturedStack, time: UInt64)?
        for (sample, weight) in zip(record.samples, weights) where sample.isValid {
            guard let stack = try? sample.stack.get() else { continue }
            // A sample without weight still counts before none.
            let time = (times[stack.context] ?? 0) + weight
            times[stack.context] = time
            if dominant.map({ time > $0.time }) ?? true { dominant = (stack, time) }
        }
        var isWhole = true
        if let captured = dominant?.stack.context {
            (context, isWhole) = Context.reading(captured)
        } else {
            context = samples.lazy.compactMap(\.workers).joined().lazy.flatMap(\.threads).compactMap(\.context).first
        }
        // The program's own label says more.
        if let work = record.work, context?.label == nil {
            context = context ?? Context(taskID: nil)
            context?.label = work
        }
        if !isWhole {
            missingContextReason = "the app's context was damaged in memory"
        } else if context?.taskID == nil {
            missingContextReason = dominant?.stack.missingContextReason ?? reason
        }
    }
}

extension StallReport.Context {
    /// Decodes a captured context: what is left of it, and whether the app's own part was whole.
    static func reading(_ captured: CapturedContext) -> (context: Self?, isWhole: Bool) {
        let payload = captured.payload.isEmpty ? nil : ContextPayload(copied: captured.payload)
        let record = captured.record.isEmpty ? nil : ThreadContextRecord(captured.record)
        var context = Self(taskID: captured.task?.id)
        context.taskName = captured.task?.name.map { String(decoding: $0, as: UTF8.self) }
        context.label = payload?.label
        context.traceID = payload?.traceID.map { hexadecimal($0) }
        context.spanID = payload?.spanID.map { hexadecimal($0) }
        if context.traceID == nil, let trace = record?.traceID {
            (context.traceID, context.spanID) = (trace, record?.spanID)
        }
        if let payload {
            let pairs = payload.attributes.map { ($0.key, $0.value) }
            if !pairs.isEmpty { context.attributes = Dictionary(pairs, uniquingKeysWith: { first, _ in first }) }
            if payload.omittedAttributes > 0 { context.omittedAttributes = payload.omittedAttributes }
        }
        if payload?.isCut == true || captured.task?.isNameCut == true { context.isCut = true }
        return (context == Self(taskID: nil) ? nil : context, captured.payload.isEmpty || payload != nil)
    }
}

extension StallReport.ThreadDescription {
    init(_ thread: ThreadIdentity, _ captured: CapturedStack? = nil) {
        self.init(id: thread.id, name: thread.name)
        context = captured?.context.flatMap { StallReport.Context.reading($0).context }
    }
}

/// OpenTelemetry's thread context record, which a tracer publishes for the thread's active span (OTEP 4947): 16 bytes
/// of the trace id, 8 of the span id, a mark that it is valid, the trace flags, and attributes without names.
struct ThreadContextRecord: Equatable {
    /// The id of the trace, as 32 hexadecimal digits; `nil` if no span is active.
    let traceID: String?
    /// The id of the span, as 16 hexadecimal digits; `nil` if no span is active.
    let spanID: String?

    /// Reads a copy of a record; `nil` if it is too short or not valid.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 28, bytes[24] == 1 else { return nil }
        let (trace, span) = (bytes[..<16], bytes[16..<24])
        let isActive = trace.contains { $0 != 0 } && span.contains { $0 != 0 }
        traceID = isActive ? hexadecimal(trace) : nil
        spanID = isActive ? hexadecimal(span) : nil
    }
}
