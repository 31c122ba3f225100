import LinuxSupport
import StackCapture
import StallReports

extension LoopSupervisor {
    /// Begins a stall, or puts that off if there is no time for the look that may excuse its turn; returns until when,
    /// in monotonic nanoseconds.
    ///
    /// Until then the turn is no stall, and counts as missed if it ends.
    mutating func beginInTime(_ stall: StallDetector.Stall, _ poll: LoopPoll, at time: UInt64) -> UInt64? {
        // A thread's stack may show a run of a run loop that may wait, or a tool's wait.
        let mayBeExcused = loop.source.kind == .runLoop || loop.source.kind == .mainQueue
        guard mayBeExcused, case .thread = poll.target, !context.mayLook else {
            log.delays = 0
            context.look { begin(stall, poll, at: time) }
            return nil
        }
        guard log.delays < LookBudget.mostDelays else {
            log.delays = 0
            context.lookUrgently { begin(stall, poll, at: time) }
            return nil
        }
        log.delays += 1
        // What excused the turn before still does if it ends now.
        let counts = decided.turn != stall.turnBegan || decided.countingFrom != .max
        detector.measureAnew(from: stall.start, counts: counts)
        return context.nextLook(at: time)
    }

    private mutating func begin(_ stall: StallDetector.Stall, _ poll: LoopPoll, at time: UInt64) {
        let target = poll.target
        if context.options.ignoresDebugged, case .thread(let thread) = target, thread != log.pendingThread,
            isTraced(thread)
        {
            detector.measureAnew(from: time)
            log.isDebugged = true
            return suppress(.debugger)
        }
        log.isDebugged = false
        guard !followToolWait(stall, poll, at: time) else { return detector.measureAnew(from: time) }
        if let start = followPoolWait(stall, at: time) {
            return detector.measureAnew(from: start, counts: isPoolWaitOver(stall.turnBegan))
        }
        reportFollowed(at: time)
        // The turn ran at the poll; of a turn that has ended since, the end is known only roughly.
        let overSince = loop.recorder.markStalled(stall.turnBegan).map { _ in time }
        let waits = log.unobservedRun == nil ? nil : target.voluntarySwitches
        beginSamples(from: stall.start)
        resolvePending()
        let first = inspect(target)
        if overSince == nil, !loop.source.isInTurn(first.sample.wholeStack) {
            // The loop has ended or is not followed any more, so nothing is delayed.
            return abandon()
        }
        let isOverNow = overSince != nil || poll.turnEnd != nil
        if isOverNow ? log.unobservedRun?.mayHaveWaited(waits) ?? false : mayHaveWaited(poll, first.stack, waits) {
            loop.recorder.clearStalled()
            log.isUncertain = true
            return detector.measureAnew(from: time)
        }
        if !isOverNow, beginsToolWait(first, of: stall, poll, at: time) {
            loop.recorder.clearStalled()
            return detector.measureAnew(from: time)
        }
        var record = StallRecord(stall, of: loop, poll, threshold: detector.threshold, at: time)
        if let toolWait, toolWait.turn == stall.turnBegan { record.startUncertainty = stall.start &- toolWait.time }
        if let poolWait, poolWait.turn == stall.turnBegan { record.startUncertainty = stall.start &- poolWait.time }
        if log.isUncertain { record.startUncertainty = stall.start &- stall.turnBegan }
        record.work = loop.source.work
        record.poolWidth = loop.source.width
        record.poolWorkers = (loop.source as? HeartbeatSource)?.workers
        open = OpenRecord(
            record: record,
            leadUp: LeadUpReader(of: loop, context, start: stall.start),
            escalation: context.options.escalationMultiple.map { stall.start &+ UInt64($0) &* detector.threshold })
        victims = VictimLog()
        if log.wasStopped {
            log.wasStopped = false
            earlySampling.returnCredit()
        }
        add(first, to: stall, poll, isFirst: true, overSince: overSince)
    }

    /// Reports turns that were over when the watchdog looked, by the recorder's times: it knows no more of them.
    func report(_ missed: MissedTurns, _ poll: LoopPoll, at time: UInt64) {
        for (number, turn) in missed.turns.enumerated() {
            let omitted = number == 0 ? missed.omitted : 0
            let stall = StallDetector.Stall(
                turnBegan: turn.start, start: turn.start, turn: poll.turn.number, nesting: poll.turn.nesting)
            var record = StallRecord(stall, of: loop, poll, threshold: missed.threshold, at: time)
            (record.state, record.duration, record.missed) = (.ended, turn.end - turn.start, 1 + omitted)
            record.startUncertainty = nil
            record.missedReason = MissedTurns.reason(
                late: record.watchdogLate, omitted: omitted, policy: poll.target.realTimePolicy)
            let leadUp = LeadUpReader(of: loop, context, start: turn.start)
            OpenRecord(record: record, leadUp: leadUp).submit([], context)
        }
    }

    private mutating func abandon() {
        loop.recorder.clearStalled()
        open = nil
        detector.abandon()
        forgetSamples()
    }

    /// Returns whether the loop may have waited for its own events since the turn's age counts.
    ///
    /// In a run without observers it may have, unless the thread's number of waits has not changed since the last poll,
    /// a threshold ago. The number does not change if the thread computes, or is blocked all the time. The loop may
    /// also have waited just after such a run, which may have ended a moment ago.
    private mutating func mayHaveWaited(_ poll: LoopPoll, _ stack: CapturedStack?, _ waits: UInt64?) -> Bool {
        // Of the function of a run there are more frames than the observers have seen runs begin.
        let function = loop.source.runFunction
        let runs = stack?.frames.count { function.contains($0.address) } ?? 0
        let isInRun = runs > poll.turn.nesting + 1
        let run = log.unobservedRun ?? (isInRun ? UnobservedRun() : nil)
        guard run?.mayHaveWaited(waits) == true else { return false }
        // Read after the capture, because being stopped for it counts as a wait.
        log.unobservedRun = isInRun ? UnobservedRun(waits: poll.target.voluntarySwitches) : nil
        return true
    }

    mutating func sample(_ stall: StallDetector.Stall, _ poll: LoopPoll, escalates: Bool = false) {
        resolvePending()
        add(inspect(poll.target), to: stall, poll, escalates: escalates)
    }

    mutating func add(
        _ inspection: TurnLog.Inspection, to stall: StallDetector.Stall, _ poll: LoopPoll, isFirst: Bool = false,
        overSince: UInt64? = nil, escalates: Bool = false
    ) {
        guard open != nil else { return }
        let target = poll.target
        var sample = inspection.sample
        // The queue may have moved to another thread.
        let isThreadGone = sample.isThreadGone && loop.target == target
        var observation: Observation?
        let isLookedAt = !sample.isOutOfTime
        if isFirst { diagnostician.forgetStall() }
        if case .thread(let thread) = target, !isThreadGone, isLookedAt {
            observation = diagnostician.observeLate(
                thread, inspection.reading, stack: inspection.stack)
        }
        let turnEnd = overSince ?? poll.turnEnd
        // A thread may end right after its turn. If it ended within it, no later moment of the turn is known.
        if sample.isThreadGone, isFirst, turnEnd == nil {
            abandon()
            return suppress(.threadEnded)
        }
        sample.isValid = overSince == nil && !isThreadGone && isWithinTurn(sample, turnEnd)
        let observations = observation.map {
            diagnostician.kept(
                $0, stack: inspection.stack, start: stall.start, isFirst: isFirst && log.observations.isEmpty,
                end: turnEnd)
        }
        if inspection.isUnchanged { log.observe(observations ?? []) } else { log.add(sample, observations ?? []) }
        // A thread that has ended delays no turn, so there is nothing to escalate.
        if escalates { open?.record.isEscalated = !sample.isThreadGone && turnEnd == nil }
        if sample.isPending, case .thread(let thread) = target { log.pendingThread = thread }
        if isThreadGone {
            detector.abandon()
            return end(stall, at: turnEnd ?? context.now())
        }
        if case .thread(let thread) = target, isLookedAt {
            open?.record.cause =
                observation == nil ? nil : diagnostician.cause(thread, start: stall.start, log.observations)
        }
        if isLookedAt { lookAtVictims(of: stall, poll) }
        guard var record = open?.record else { return }
        record.duration = max(record.duration, context.now() &- stall.start)
        // A later heartbeat, of a turn that has ended, tells nothing.
        if turnEnd == nil {
            record.loop.priorities = (loop.source as? HeartbeatSource)?.pendingPriorities ?? record.loop.priorities
        }
        record.samples = log.samples
        record.victims = victims.victims(from: stall.start, until: stall.start &+ record.duration)
        // In a deadlock every thread matters, and there may be no later opportunity to capture them.
        let isDeadlock = record.cause?.kind == .deadlock && record.lacksThreads
        if isDeadlock || context.options.capturesAllThreads && isFirst && record.receiver == nil {
            context.addOtherThreads(to: &record, than: target)
        }
        open?.record = record
        submit()
    }

    func isWithinTurn(_ sample: StallRecord.Sample, _ end: UInt64?) -> Bool {
        guard let end else { return true }
        guard let captured = (try? sample.stack.get())?.capturedAt else { return false }
        return captured <= end
    }

    /// Ends a stall; what its end made late is known only after the turns that follow at once (`mayBeFollowed`).
    mutating func end(_ stall: StallDetector.Stall, at end: UInt64, mayBeFollowed: Bool = false) {
        loop.recorder.clearStalled()
        // The thread has left the kernel before it ended the turn, so the stack is there.
        resolvePending()
        dropPending()
        guard var record = open?.record else { return }
        record.state = .ended
        record.duration = end &- min(stall.start, end)
        record.tasks = context.tasks
        record.victims = victims.victims(from: stall.start, until: end)
        loop.timerDelays.add(victims.dueTimers, at: end)
        if let thread = record.loop.thread?.id {
            let cause = diagnostician.end(
                thread, start: stall.start, end: stall.start &+ record.duration, log.observations)
            record.cause = cause ?? record.cause
        }
        open?.record = record
        open?.leadUp?.update(now: context.now(), isWatched: context.isWatched)
        if mayBeFollowed, record.victims != nil, let open {
            followed = FollowedStall(open: open, samples: log.samples, end: end, threshold: detector.threshold)
        } else {
            submit()
        }
        open = nil
        forgetSamples()
    }

    func submit() { open?.submit(log.samples, context) }

    /// Escalates the stall when it is due, with a sample of that moment; returns when it is due, `nil` if it is not.
    mutating func escalate(_ poll: LoopPoll, at time: UInt64) -> UInt64? {
        guard let stall = detector.stall, let due = open?.escalation else { return nil }
        guard time >= due else { return due }
        // A watchdog over a threshold late was stopped, like the loop: give the loop one more threshold to recover.
        guard time &- due <= detector.threshold else {
            open?.escalation = time &+ detector.threshold
            return open?.escalation
        }
        open?.escalation = nil
        if poll.turnEnd == nil { context.lookUrgently { sample(stall, poll, escalates: true) } }
        return nil
    }
}
