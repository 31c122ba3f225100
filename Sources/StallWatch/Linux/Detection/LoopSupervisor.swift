import LinuxSupport
import StackCapture
import StallReports
import Synchronization

/// Polls one loop on the watchdog and carries out the decisions of its detectors.
struct LoopSupervisor {
    let loop: LoopMonitor
    private var detector: StallDetector
    /// `nil` if the loop does not report its waits, or saturation is not to be found.
    private var saturation: SaturationSupervisor?
    private var spin: SpinSupervisor?
    private var modes: ModeStarvationSupervisor?
    /// Whether the next poll may be for the loop's load only, which must not delay the look at a turn that begins.
    private(set) var isLoadFollowed = false
    /// From which age turns are checked, and which may be stopped for it.
    private var earlySampling = EarlySampling()
    /// What is known of the turn that the last poll saw.
    private var turn = TurnCase.none
    private(set) var progress: LoopProgress
    /// Whether the last poll found nothing to poll for: the loop wakes the watchdog before anything can happen.
    private var isQuiet = false
    private var diagnostician: StallDiagnostician
    private unowned let context: WatchdogContext

    init(_ loop: LoopMonitor, _ context: WatchdogContext) {
        self.loop = loop
        self.context = context
        detector = StallDetector(threshold: loop.threshold)
        progress = LoopProgress(label: loop.label, state: .starting, since: context.now())
        diagnostician = StallDiagnostician(threads: context.threads, waits: loop.recorder.waits)
        if let files = loop.takeFiles() { diagnostician.use(files) }
        // Only a run loop reports its waits.
        if loop.source.kind == .runLoop, let threshold = context.options.saturationThreshold {
            saturation = SaturationSupervisor(threshold: threshold)
            spin = SpinSupervisor()
        }
        if let rule = context.options.modeRule, let reader = (loop.source as? RunLoopSource)?.modeReader {
            modes = ModeStarvationSupervisor(rule: rule, reader)
        }
    }

    /// When the current turn began, in monotonic nanoseconds; `nil` between turns.
    var turnBegan: UInt64? { loop.recorder.snapshot().began }

    /// Whether the loop waits, and may wake the watchdog with its next turn.
    var mayWake: Bool { isQuiet && turnBegan == nil }

    /// Whether the loop wakes the watchdog before anything can happen: it waits, its stall has used up its samples and
    /// will ring at its end, or its thread has ended.
    var mayPark: Bool {
        let began = turnBegan
        return began == nil || began == detector.stall?.turnBegan || began == detector.abandoned
    }

    /// Polls the loop, carries out the decisions of the detectors, and returns when to poll again.
    ///
    /// That is `.max` if the loop wakes the watchdog before anything can happen. The age of a turn counts from
    /// `countingFrom`, because of `reason`. Times are in monotonic nanoseconds.
    mutating func poll(at time: UInt64, countingFrom: UInt64, suppressed reason: SuppressionReason) -> UInt64 {
        let poll = loop.poll(at: time)
        detector.threshold = loop.threshold
        let decision = detector.decide(poll.turn, at: time, countingFrom: countingFrom, checkAge: checkAge(poll))
        // The stall of an earlier turn ends before the current turn is followed.
        if case .end(let stall) = decision.actions.first { end(stall, at: poll.stallEnd ?? time) }
        follow(poll.turn)
        for action in decision.actions {
            switch action {
            case .checkEarly(let turn): context.timeCheck { checkEarly(turn, poll.target) }
            case .check(let stall): context.timeCheck { check(stall, poll.target) }
            case .begin(let stall): begin(stall, poll, at: time)
            case .sample(let stall): sample(stall, poll.target)
            case .end: break
            }
        }
        if detector.stall == nil, turn.began != 0 {
            // The watchdog counts a stopped process once for all turns, but a pause for each turn.
            if reason == .paused, turn.began < countingFrom, time &- turn.began >= loop.threshold { suppress(reason) }
            prepare(poll.target, at: time)
        }
        let nextLoad = min(
            saturation?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max,
            spin?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max,
            modes?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max)
        isLoadFollowed = nextLoad != .max
        let nextEscalation = escalate(poll.target, at: time)
        noteProgress(poll, at: time)
        let nextPoll = min(decision.nextPoll ?? .max, nextEscalation ?? .max, poll.nextHeartbeat ?? .max)
        isQuiet = nextPoll == .max
        return min(nextPoll, nextLoad)
    }

    private mutating func follow(_ current: TurnSnapshot) {
        let began = current.began ?? 0
        if began != turn.began {
            forgetSamples()
            turn = TurnCase(began: began)
        }
        if current.isWaitingUnobserved { turn.unobservedRun = UnobservedRun() }
    }

    private mutating func prepare(_ target: CaptureTarget, at time: UInt64) {
        guard case .thread(let thread) = target else { return }
        diagnostician.inspect(thread, turn: turn.began, threshold: loop.threshold, now: time)
    }

    private mutating func noteProgress(_ poll: LoopPoll, at time: UInt64) {
        let state: LoopProgress.State
        if detector.stall != nil {
            state = .stalled
        } else if turn.began != 0, turn.began == detector.abandoned {
            state = .ended
        } else if turn.isDebugged {
            state = .held
        } else {
            state = poll.isStarting ? .starting : .running
        }
        let since = detector.stall?.start ?? (state == progress.state ? progress.since : time)
        progress = LoopProgress(label: loop.label, state: state, since: since)
    }

    /// Stops following the loop, and reports a stall, or a period of the loop, that still lasts as abandoned.
    ///
    /// The turn in which `stopper`, a thread, stops the monitor is over there.
    mutating func leave(at time: UInt64, stoppedBy stopper: Int32? = nil) {
        let isStoppedInTurn = stopper.map { loop.target == .thread($0) } ?? false
        loop.source.remove()
        if let stall = detector.stall {
            if let ended = loop.recorder.stalledTurnEnd(stall.turnBegan) ?? (isStoppedInTurn ? time : nil) {
                end(stall, at: ended)
            } else if turn.record != nil {
                resolvePending()
            }
            if var record = turn.record {
                record.state = .abandoned
                record.duration = time &- stall.start
                turn.leadUp?.update(among: context.loops, now: time)
                record.leadUp = turn.leadUp?.leadUp
                context.submit(record)
            }
        }
        // Also of a turn that is no stall: a stop that stays would give its stack to a later turn.
        dropPending()
        saturation?.leave(context, at: time)
        spin?.leave(context, at: time)
        modes?.leave(context, at: time)
    }

    private mutating func suppress(_ reason: SuppressionReason) {
        guard !turn.isSuppressed else { return }
        turn.isSuppressed = true
        context.suppressed.add(reason)
    }
}

// MARK: - Stalls

extension LoopSupervisor {
    private mutating func begin(_ stall: StallDetector.Stall, _ poll: LoopPoll, at time: UInt64) {
        let target = poll.target
        // A pending capture is a tracer, too.
        if context.options.ignoresDebugged, case .thread(let thread) = target, thread != turn.pendingThread,
            isTraced(thread)
        {
            detector.measureAnew(from: time)
            turn.isDebugged = true
            return suppress(.debugger)
        }
        turn.isDebugged = false
        // The turn ran at the poll; of a turn that has ended since, the end is known only roughly.
        let overSince = loop.recorder.markStalled(stall.turnBegan).map { _ in time }
        let waits = turn.unobservedRun == nil ? nil : target.voluntarySwitches
        beginSamples(from: stall.start)
        resolvePending()
        let first = turn.inspect(target, context, &diagnostician)
        if overSince == nil, !loop.source.isInTurn(first.sample.wholeStack) {
            // The loop has ended or is not followed any more, so nothing is delayed.
            return abandon()
        }
        let isOverNow = overSince != nil || loop.recorder.stalledTurnEnd(stall.turnBegan) != nil
        if isOverNow ? turn.unobservedRun?.mayHaveWaited(waits) ?? false : mayHaveWaited(poll, first.sample, waits) {
            loop.recorder.clearStalled()
            turn.isUncertain = true
            return detector.measureAnew(from: time)
        }
        var record = StallRecord(stall, of: loop, poll, at: time)
        if turn.isUncertain { record.startUncertainty = stall.start &- stall.turnBegan }
        record.work = loop.source.work
        turn.leadUp = LeadUpReader(of: loop, among: context.loops, start: stall.start, now: context.now())
        record.leadUp = turn.leadUp?.leadUp
        turn.record = record
        turn.escalation = context.options.escalationMultiple.map { stall.start &+ UInt64($0) &* loop.threshold }
        _ = earlySampling.finish(stall.turnBegan, isStall: true)
        add(first, to: stall, of: target, isFirst: true, overSince: overSince)
    }

    /// Drops the stall, because no thread runs the loop's turn any more.
    private mutating func abandon() {
        loop.recorder.clearStalled()
        turn.record = nil
        detector.abandon()
        forgetSamples()
    }

    /// Returns whether the loop may have waited for its own events since the turn's age counts.
    ///
    /// In a run without observers it may have, unless the thread's number of waits has not changed since the last poll,
    /// a threshold ago. The number does not change if the thread computes, or is blocked all the time. The loop may
    /// also have waited just after such a run, which may have ended a moment ago.
    private mutating func mayHaveWaited(_ poll: LoopPoll, _ sample: StallRecord.Sample, _ waits: UInt64?) -> Bool {
        let stack = try? sample.stack.get()
        // Of the function of a run there are more frames than the observers have seen runs begin.
        let function = loop.source.runFunction
        let runs = stack?.frames.count { function.contains($0.address) } ?? 0
        let isInRun = runs > poll.turn.nesting + 1
        let run = turn.unobservedRun ?? (isInRun ? UnobservedRun() : nil)
        guard run?.mayHaveWaited(waits) == true else { return false }
        // Read after the capture, because being stopped for it counts as a wait.
        turn.unobservedRun = isInRun ? UnobservedRun(waits: poll.target.voluntarySwitches) : nil
        return true
    }

    private mutating func sample(_ stall: StallDetector.Stall, _ target: CaptureTarget, escalates: Bool = false) {
        resolvePending()
        add(turn.inspect(target, context, &diagnostician), to: stall, of: target, escalates: escalates)
    }

    private mutating func add(
        _ inspection: TurnCase.Inspection, to stall: StallDetector.Stall, of target: CaptureTarget,
        isFirst: Bool = false, overSince: UInt64? = nil, escalates: Bool = false
    ) {
        guard var record = turn.record else { return }
        var sample = inspection.sample
        // A thread may end right after its turn. If it ended within it, no later moment of the turn is known.
        let turnEnd = sample.isThreadGone ? loop.recorder.stalledTurnEnd(stall.turnBegan) : nil
        if sample.isThreadGone, isFirst, turnEnd == nil {
            // No thread runs the loop any more, so no turn is delayed.
            abandon()
            return suppress(.threadEnded)
        }
        // The queue may have moved to another thread.
        let isThreadGone = sample.isThreadGone && loop.target == target
        sample.isValid = overSince == nil && !isThreadGone && isWithinTurn(sample)
        // A thread that has ended delays no turn, so there is nothing to escalate.
        if escalates { record.isEscalated = !sample.isThreadGone }
        if !inspection.isUnchanged { turn.add(sample) }
        record.samples = turn.samples
        if sample.isPending, case .thread(let thread) = target { turn.pendingThread = thread }
        if isThreadGone {
            turn.record = record
            detector.abandon()
            return end(stall, at: turnEnd ?? context.now())
        }
        if case .thread(let thread) = target {
            record.cause = diagnostician.sample(
                thread, stack: try? sample.stack.get(), start: stall.start, isFirst: isFirst,
                turnEnd: { [loop] in overSince ?? loop.recorder.stalledTurnEnd(stall.turnBegan) }
            )
        }
        record.duration = max(record.duration, context.now() &- stall.start)
        record.captureMethods = context.capturer.methods
        record.unwinder = context.capturer.unwinder
        // In a deadlock every thread matters, and there may be no later opportunity to capture them.
        let isDeadlock = record.cause?.kind == .deadlock && record.otherThreads.isEmpty
        if isDeadlock || context.options.capturesAllThreads && isFirst {
            context.addOtherThreads(to: &record, than: target)
        }
        record.suppressed = context.suppressed.current
        turn.record = record
        context.submit(record)
    }

    private func isWithinTurn(_ sample: StallRecord.Sample) -> Bool {
        guard let end = loop.recorder.stalledTurnEnd(turn.began) else { return true }
        guard let captured = (try? sample.stack.get())?.capturedAt else { return false }
        return captured <= end
    }

    private mutating func end(_ stall: StallDetector.Stall, at end: UInt64) {
        loop.recorder.clearStalled()
        // The thread has left the kernel before it ended the turn, so the stack is there.
        resolvePending()
        dropPending()
        guard var record = turn.record else { return }
        record.state = .ended
        // The watchdog has seen the turn over its threshold, so the duration is at least the threshold.
        record.duration = max(end &- min(stall.start, end), record.threshold)
        turn.leadUp?.update(among: context.loops, now: context.now())
        record.leadUp = turn.leadUp?.leadUp
        record.tasks = context.tasks
        record.suppressed = context.suppressed.current
        if let thread = record.loop.thread?.id {
            let cause = diagnostician.end(thread, start: stall.start, end: stall.start &+ record.duration)
            record.cause = cause ?? record.cause
        }
        turn.record = nil
        forgetSamples()
        context.submit(record)
    }

    /// Escalates the stall when it is due, with a sample of that moment; returns when it is due, `nil` if it is not.
    private mutating func escalate(_ target: CaptureTarget, at time: UInt64) -> UInt64? {
        guard let stall = detector.stall, turn.record != nil, let due = turn.escalation else { return nil }
        guard time >= due else { return due }
        // A watchdog that is over a threshold late was stopped, and so was the loop. Give the loop one more threshold
        // to recover.
        guard time &- due <= loop.threshold else {
            turn.escalation = time &+ loop.threshold
            return turn.escalation
        }
        turn.escalation = nil
        guard loop.recorder.stalledTurnEnd(stall.turnBegan) == nil else { return nil }
        sample(stall, target, escalates: true)
        return nil
    }
}

// MARK: - Checks and samples

extension LoopSupervisor {
    /// Returns the age from which the loop's turns are checked, in nanoseconds; `nil` for pools, where a check captures
    /// all threads, and for turns that may wait unobserved, where a stop would count as a wait.
    private mutating func checkAge(_ poll: LoopPoll) -> UInt64? {
        guard case .thread = poll.target, poll.turn.began != nil || poll.nextHeartbeat == nil else { return nil }
        let mayWaitUnobserved = poll.turn.began == turn.began && (turn.unobservedRun != nil || turn.isUncertain)
        guard !mayWaitUnobserved, !poll.turn.isWaitingUnobserved else { return nil }
        let threshold = loop.threshold
        let age = earlySampling.age(atTurn: poll.turn.number, threshold: threshold, loop.recorder.histogram.snapshot)
        return age ?? threshold
    }

    private mutating func checkEarly(_ early: StallDetector.EarlyTurn, _ target: CaptureTarget) {
        guard case .thread(let thread) = target else { return }
        beginSamples(from: early.start)
        guard resolvePending() else { return }
        let isPermitted = turn.mayStop && earlySampling.mayStop(turn.began)
        var mayStop = false
        let inspection = turn.inspect(target, context, &diagnostician) {
            // A stop of a thread that a debugger holds would be refused, and ptrace would no longer be used.
            mayStop = isPermitted && !isTraced(thread)
            return mayStop
        }
        if mayStop, inspection.mayHaveStopped { earlySampling.noteStop(of: turn.began) }
        keep(inspection, of: thread, isEarly: true)
    }

    private mutating func check(_ stall: StallDetector.Stall, _ target: CaptureTarget) {
        guard case .thread(let thread) = target, resolvePending() else { return }
        let inspection = turn.inspect(target, context, &diagnostician) { [mayStop = turn.mayStop] in mayStop }
        if inspection.sample.isThreadGone { return add(inspection, to: stall, of: target) }
        keep(inspection, of: thread, isEarly: false)
        turn.record?.samples = turn.samples
    }

    /// Keeps what a check has seen, if it is a stack of the turn; otherwise the next sample stands for the time.
    private mutating func keep(_ inspection: TurnCase.Inspection, of thread: Int32, isEarly: Bool) {
        if inspection.sample.isPending { turn.pendingThread = thread }
        guard !inspection.isUnchanged, isWithinTurn(inspection.sample) else { return }
        guard let stack = turn.add(inspection, isEarly: isEarly) else { return }
        diagnostician.observe(thread, stack: stack) { [loop, began = turn.began] in
            loop.recorder.stalledTurnEnd(began) != nil
        }
    }

    /// Begins to sample the turn, unless its samples count from the same moment.
    private mutating func beginSamples(from start: UInt64) {
        guard turn.start != start else { return }
        dropPending()
        turn.restart(from: start)
        diagnostician.forget()
    }

    private mutating func forgetSamples() {
        dropPending()
        turn.restart(from: turn.began)
        diagnostician.forget()
        if earlySampling.finish(turn.began, isStall: false) { loop.stoppedEarly.wrappingAdd(1, ordering: .relaxed) }
    }

    /// Completes the samples that waited for the thread to leave the kernel; returns `false` if it has not left yet.
    @discardableResult
    private mutating func resolvePending() -> Bool {
        guard let thread = turn.pendingThread else { return true }
        guard let stack = context.capturer.pendingCapture(of: thread) else { return false }
        turn.resolvePending(stack, images: context.capturer.images())
        if case .success(let stack) = stack { diagnostician.explainRunning(by: stack) }
        return true
    }

    private mutating func dropPending() {
        if let thread = turn.pendingThread.take() { context.capturer.cancelPendingCapture(of: thread) }
    }
}
