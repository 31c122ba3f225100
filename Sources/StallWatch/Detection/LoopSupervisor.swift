import LinuxSupport
import StackCapture
import StallReports

/// The watchdog's work for one loop: what its looks decide, carried out.
struct LoopSupervisor {
    let loop: LoopMonitor
    private var detector: StallDetector
    private var saturation: SaturationDetector?
    private var stallRecord: StallRecord?
    private var saturationRecord: StallRecord?
    /// When the stall escalates; `nil` when it has, or never does.
    private var escalation: UInt64?
    /// The turn that has been counted as held back, so that no turn is counted twice.
    private var heldBackTurn: UInt64 = 0
    /// The turn in which the loop was found, by the last look, in a run that nobody observes, and how often its thread had
    /// waited by then; `nil` if that look found it waiting, and so cannot tell that it waited no longer.
    private var unobservedRun: (turnBegan: UInt64, waits: UInt64?)?
    /// The turn that was measured anew because it may have waited: nobody knows until when.
    private var uncertainTurn: UInt64?
    private var diagnostician: StallDiagnostician
    private unowned let context: WatchdogContext

    init(_ loop: LoopMonitor, _ context: WatchdogContext) {
        self.loop = loop
        self.context = context
        detector = StallDetector(threshold: loop.threshold)
        diagnostician = StallDiagnostician(threads: context.threads, waits: loop.recorder.waits)
        // Only a loop that says when it waits can be told from one that never does.
        saturation =
            loop.source.reportsWaits ? context.saturationThreshold.map(SaturationDetector.init) : nil
    }

    /// When the turn that lasts now began.
    var turnBegan: UInt64? { loop.recorder.snapshot().began }

    /// Whether the last look found the loop in a turn that is too long.
    var isInStall: Bool { detector.stall != nil }

    /// Whether nothing can happen to the loop that it would not wake the watchdog for: it waits, its stall has used up
    /// its samples and will ring at its end, or its thread is gone.
    var mayPark: Bool {
        let began = turnBegan
        return began == nil || began == detector.stall?.turnBegan || began == detector.abandoned
    }

    /// Polls the loop and carries out what the detectors decide.
    ///
    /// - Parameters:
    ///   - time: The time, in monotonic nanoseconds.
    ///   - countingFrom: What a turn did before this moment does not count.
    ///   - reason: Why it does not.
    /// - Returns: When to poll again; `.max` if the loop wakes the watchdog before anything can happen.
    mutating func poll(at time: UInt64, countingFrom: UInt64, suppressed reason: SuppressionReason) -> UInt64 {
        let poll = loop.poll(at: time)
        let turn = poll.turn
        if turn.isWaitingUnobserved, let began = turn.began { unobservedRun = (began, nil) }
        detector.threshold = loop.threshold
        let decision = detector.decide(turn, at: time, countingFrom: countingFrom)
        for action in decision.actions {
            switch action {
            case .begin(let stall): begin(stall, poll, at: time)
            case .sample(let stall): sample(stall, poll.target)
            case .end(let stall): end(stall, at: loop.recorder.stalledTurnEnd(stall.turnBegan) ?? time)
            }
        }
        // A process that was stopped is counted once by the watchdog, however many turns that concerns.
        if reason == .paused, detector.stall == nil, let began = turn.began, began < countingFrom,
            time &- began >= loop.threshold
        {
            suppress(began, reason)
        }
        if detector.stall == nil, let began = turn.began, case .thread(let thread) = poll.target {
            let reading = diagnostician.inspect(thread, turn: began, threshold: loop.threshold, now: time)
            // The sample of a stall is not to wait for the stalled thread.
            if context.mayShareProcessor, let processor = reading?.processor {
                context.capturer.leave(processor: processor)
            }
        }
        watchSaturation(poll, at: time)
        return min(decision.nextPoll ?? .max, poll.nextHeartbeat ?? .max, escalate(poll.target, at: time) ?? .max)
    }

    /// The monitor stops: nobody will see the end of what still lasts.
    mutating func leave(at time: UInt64) {
        loop.source.remove()
        if let stall = detector.stall {
            if let ended = loop.recorder.stalledTurnEnd(stall.turnBegan) {
                end(stall, at: ended)
            } else if var record = stallRecord {
                record.state = .abandoned
                record.duration = time &- stall.start
                context.submit(record)
            }
        }
        if var record = saturationRecord, let saturation = saturation?.current {
            record.state = .abandoned
            record.duration = time &- saturation.since
            context.submit(record)
        }
    }
}

// MARK: - Stalls

extension LoopSupervisor {
    private mutating func begin(_ stall: StallDetector.Stall, _ poll: LoopPoll, at time: UInt64) {
        let target = poll.target
        if case .thread(let thread) = target, context.ignoresDebugged, isTraced(thread) {
            detector.measureAnew(from: time)
            return suppress(stall.turnBegan, .debugger)
        }
        let isOver = loop.recorder.markStalled(stall.turnBegan) != nil
        let waits = unobservedRun?.turnBegan == stall.turnBegan ? waits(of: target) : nil
        let first = context.sample(target, age: context.now() &- stall.start)
        let isOverNow = isOver || loop.recorder.stalledTurnEnd(stall.turnBegan) != nil
        if isOverNow ? hadWaited(stall, waits: waits) : mayHaveWaited(stall, poll, first, waits: waits) {
            loop.recorder.clearStalled()
            uncertainTurn = stall.turnBegan
            return detector.measureAnew(from: time)
        }
        stallRecord = StallRecord(stall, of: loop, poll, at: time)
        if uncertainTurn == stall.turnBegan { stallRecord?.startUncertainty = stall.start &- stall.turnBegan }
        escalation = context.escalationMultiple.map { stall.start &+ UInt64($0) &* loop.threshold }
        add(first, to: stall, of: target, isOver: isOver)
    }

    /// Whether the loop may have waited for its own events since the turn counts.
    ///
    /// That is so in a run in a mode without observers, unless the thread has not waited for anything: who computes, or
    /// is blocked once and for all, goes on at the same number of waits a threshold later. It is also so after such a run,
    /// which may have waited until a moment ago.
    private mutating func mayHaveWaited(
        _ stall: StallDetector.Stall, _ poll: LoopPoll, _ sample: StallRecord.Sample, waits: UInt64?
    ) -> Bool {
        let stack = try? sample.stack.get()
        let isInRun = stack.map { poll.showsUnobservedRun($0.frames.lazy.map(\.address)) } ?? false
        guard isInRun || unobservedRun?.turnBegan == stall.turnBegan else { return false }
        if let waits, waits == unobservedRun?.waits { return false }
        // Counted after the capture: to be stopped for it is a wait, too.
        unobservedRun = isInRun ? (stall.turnBegan, self.waits(of: poll.target)) : nil
        return true
    }

    /// The same of a turn that has ended since it was looked at: the stack is that of something else.
    private func hadWaited(_ stall: StallDetector.Stall, waits: UInt64?) -> Bool {
        guard let unobservedRun, unobservedRun.turnBegan == stall.turnBegan else { return false }
        return waits == nil || waits != unobservedRun.waits
    }

    private func waits(of target: CaptureTarget) -> UInt64? {
        guard case .thread(let thread) = target else { return nil }
        return voluntarySwitches(of: thread)
    }

    private mutating func sample(_ stall: StallDetector.Stall, _ target: CaptureTarget, escalates: Bool = false) {
        add(
            context.sample(target, age: context.now() &- stall.start), to: stall, of: target, escalates: escalates
        )
    }

    private mutating func add(
        _ sample: StallRecord.Sample, to stall: StallDetector.Stall, of target: CaptureTarget, isOver: Bool = false,
        escalates: Bool = false
    ) {
        guard var record = stallRecord else { return }
        var sample = sample
        if sample.isThreadGone, record.samples.isEmpty {
            // Nobody runs the loop any more, so nobody waits for it.
            loop.recorder.clearStalled()
            stallRecord = nil
            detector.abandon()
            return suppress(stall.turnBegan, .threadEnded)
        }
        // A queue may have been handed on to another thread.
        let isThreadGone = sample.isThreadGone && loop.target == target
        sample.isValid = !isOver && !isThreadGone && loop.recorder.stalledTurnEnd(stall.turnBegan) == nil
        // For a thread that is gone nobody waits: no reason to do anything about it.
        if escalates { record.isEscalated = !sample.isThreadGone }
        record.samples.append(sample)
        if isThreadGone {
            stallRecord = record
            detector.abandon()
            return end(stall, at: context.now())
        }
        if case .thread(let thread) = target {
            let recorder = loop.recorder
            record.cause = diagnostician.sample(
                thread, stack: try? sample.stack.get(), start: stall.start, isFirst: record.samples.count == 1,
                isOver: { isOver || recorder.stalledTurnEnd(stall.turnBegan) != nil }
            )
        }
        record.duration = max(record.duration, context.now() &- stall.start)
        record.captureMethods = context.capturer.methods
        // In a deadlock all of the process matters, and nobody will come back to be asked again.
        let isDeadlock = record.cause?.kind == .deadlock && record.otherThreads.isEmpty
        if isDeadlock || context.capturesAllThreads && record.samples.count == 1 {
            record.captureOtherThreads(than: target, with: context)
        }
        record.suppressed = context.suppressed.current
        stallRecord = record
        context.submit(record)
    }

    private mutating func end(_ stall: StallDetector.Stall, at end: UInt64) {
        loop.recorder.clearStalled()
        guard var record = stallRecord else { return }
        record.state = .ended
        // It was seen to be over the threshold: that is the least that can be true.
        record.duration = max(end &- min(stall.start, end), record.threshold)
        record.suppressed = context.suppressed.current
        if let thread = record.loop.thread?.id {
            let cause = diagnostician.end(thread, start: stall.start, end: stall.start &+ record.duration)
            record.cause = cause ?? record.cause
        }
        stallRecord = nil
        context.submit(record)
    }

    /// Lets a stall escalate when it is time, with a sample of that moment.
    ///
    /// Returns when that will be.
    private mutating func escalate(_ target: CaptureTarget, at time: UInt64) -> UInt64? {
        guard let stall = detector.stall, stallRecord != nil, let due = escalation else { return nil }
        guard time >= due else { return due }
        // Whoever is this late itself was stopped, and so was the loop: it gets one more threshold to come back.
        guard time &- due <= loop.threshold else {
            escalation = time &+ loop.threshold
            return escalation
        }
        escalation = nil
        guard loop.recorder.stalledTurnEnd(stall.turnBegan) == nil else { return nil }
        sample(stall, target, escalates: true)
        return nil
    }

    private mutating func suppress(_ turn: UInt64, _ reason: SuppressionReason) {
        guard turn != heldBackTurn else { return }
        heldBackTurn = turn
        context.suppressed.add(reason)
    }
}

// MARK: - Saturation

extension LoopSupervisor {
    private mutating func watchSaturation(_ poll: LoopPoll, at time: UInt64) {
        switch saturation?.decide(poll.turn, at: time) {
        case .begin(let saturation):
            var record = StallRecord(
                saturation, of: loop, poll, threshold: context.saturationThreshold ?? 0, at: time)
            var sample = context.sample(poll.target, age: time &- saturation.since)
            sample.isValid = true
            record.samples.append(sample)
            record.captureMethods = context.capturer.methods
            record.suppressed = context.suppressed.current
            saturationRecord = record
            loop.recorder.markSaturated(saturation.since)
            context.submit(record)
        case .end(let saturation):
            guard var record = saturationRecord else { return }
            record.state = .ended
            record.turns = saturation.lastTurn - saturation.firstTurn
            let end = loop.recorder.saturationEnd ?? time
            record.duration = max(end &- min(saturation.since, end), record.threshold)
            saturationRecord = nil
            context.submit(record)
        case nil:
            break
        }
    }
}
