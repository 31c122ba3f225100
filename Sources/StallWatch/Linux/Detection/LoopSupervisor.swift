import LinuxSupport
import StackCapture
import StallReports

/// Polls one loop on the watchdog and carries out the decisions of its detectors.
struct LoopSupervisor {
    let loop: LoopMonitor
    private var detector: StallDetector
    private var saturation: SaturationDetector?
    private var early = EarlySampling()
    /// The threshold that is learned; `nil` if it is fixed.
    private var adaptive: AdaptiveThreshold?
    private var sampled = SampledTurn()
    private var stallRecord: StallRecord?
    private var saturationRecord: StallRecord?
    /// When the stall escalates, in monotonic nanoseconds; `nil` if it has escalated or never does.
    private var escalation: UInt64?
    /// The turn that was last counted as suppressed, so that no turn is counted twice.
    private var heldBackTurn: UInt64 = 0
    /// The turn that the last poll found in a run without observers, and its thread's number of waits at that time.
    ///
    /// The number is `nil` if that poll found the loop waiting: then no number can prove that the loop has not waited
    /// since.
    private var unobservedRun: (turnBegan: UInt64, waits: UInt64?)?
    /// The turn that was measured anew because it may have waited for an unknown time.
    private var uncertainTurn: UInt64?
    /// The thread of the samples that are captured as soon as it leaves the kernel.
    private var pendingThread: Int32?
    /// The turn over the threshold that is not a stall because a debugger holds its thread.
    private var debuggedTurn: UInt64?
    /// Whether the loop made progress at the last poll.
    private(set) var progress: LoopProgress
    private var diagnostician: StallDiagnostician
    private unowned let context: WatchdogContext

    init(_ loop: LoopMonitor, _ context: WatchdogContext) {
        self.loop = loop
        self.context = context
        detector = StallDetector(threshold: loop.threshold)
        progress = LoopProgress(label: loop.label, state: .starting, since: context.now())
        diagnostician = StallDiagnostician(threads: context.threads, waits: loop.recorder.waits)
        // Now, because the process may give up its user: then they can be read, but not opened.
        if let thread = loop.source.knownThread ?? loop.recorder.lastThread {
            context.capturer.keepFiles(of: thread)
            diagnostician.open(thread)
        }
        // Saturation can only be detected if the loop reports its waits.
        saturation =
            loop.source.reportsWaits ? context.saturationThreshold.map(SaturationDetector.init) : nil
    }

    /// When the current turn began, in monotonic nanoseconds; `nil` between turns.
    var turnBegan: UInt64? { loop.recorder.snapshot().began }

    /// Whether the last poll found nothing to poll for: the loop wakes the watchdog before anything can happen.
    private var isQuiet = false

    /// Whether the loop waits, and may wake the watchdog with its next turn.
    var mayWake: Bool { isQuiet && turnBegan == nil }

    /// Whether the last poll found the loop in a stall.
    var isInStall: Bool { detector.stall != nil }

    /// Whether the loop wakes the watchdog before anything can happen.
    ///
    /// That is so if the loop waits, if its stall has used up its samples and will ring at its end, or if its thread
    /// has ended.
    var mayPark: Bool {
        let began = turnBegan
        return began == nil || began == detector.stall?.turnBegan || began == detector.abandoned
    }

    /// Polls the loop and carries out the decisions of the detectors.
    ///
    /// - Parameters:
    ///   - time: The time, in monotonic nanoseconds.
    ///   - countingFrom: The moment from which the age of a turn counts, in monotonic nanoseconds.
    ///   - reason: Why earlier time does not count.
    /// - Returns: When to poll again, in monotonic nanoseconds; `.max` if the loop wakes the watchdog before anything
    ///   can happen.
    mutating func poll(at time: UInt64, countingFrom: UInt64, suppressed reason: SuppressionReason) -> UInt64 {
        let poll = loop.poll(at: time)
        let turn = poll.turn
        if turn.isWaitingUnobserved, let began = turn.began { unobservedRun = (began, nil) }
        // The threshold of a stall stays as it was at its beginning.
        if detector.stall == nil { learnThreshold(at: time) }
        detector.threshold = loop.threshold
        let decision = detector.decide(turn, at: time, countingFrom: countingFrom, checkAge: checkAge(poll))
        if stallRecord == nil, turn.began != sampled.turnBegan { forgetSamples() }
        for action in decision.actions {
            switch action {
            case .checkEarly(let turn): context.timeCheck { checkEarly(turn, poll.target) }
            case .check(let stall): context.timeCheck { check(stall, poll.target) }
            case .begin(let stall): begin(stall, poll, at: time)
            case .sample(let stall): sample(stall, poll.target)
            case .end(let stall): end(stall, at: loop.recorder.stalledTurnEnd(stall.turnBegan) ?? time)
            }
        }
        // The watchdog counts a stopped process once, however many turns it concerns. A pause is counted for each turn.
        if reason == .paused, detector.stall == nil, let began = turn.began, began < countingFrom,
            time &- began >= loop.threshold
        {
            suppress(began, reason)
        }
        if detector.stall == nil, let began = turn.began, case .thread(let thread) = poll.target {
            let reading = diagnostician.inspect(thread, turn: began, threshold: loop.threshold, now: time)
            context.capturer.note(thread: thread, turn: began)
            // The watchdog must not compete with the stalled thread for a CPU when it takes the first sample.
            if context.mayShareProcessor, let processor = reading?.processor {
                context.capturer.leave(processor: processor)
            }
        }
        watchSaturation(poll, at: time)
        let nextEscalation = escalate(poll.target, at: time)
        noteProgress(turn, at: time)
        let next = min(decision.nextPoll ?? .max, nextEscalation ?? .max)
        let nextPoll = min(next, poll.nextHeartbeat ?? .max)
        isQuiet = nextPoll == .max
        return nextPoll
    }

    /// Learns an adaptive threshold from the turns so far; reads them once a minute.
    private mutating func learnThreshold(at time: UInt64) {
        let bounds = loop.thresholdBounds
        guard bounds.lowerBound < bounds.upperBound else { return adaptive = nil }
        var learning = adaptive.flatMap { $0.bounds == bounds ? $0 : nil } ?? AdaptiveThreshold(bounds)
        learning.review(at: time) { [recorder = loop.recorder] in recorder.histogram.snapshot() }
        if learning.threshold != loop.threshold { loop.learn(learning.threshold, within: bounds) }
        adaptive = learning
    }

    /// Notes whether the loop makes progress, and since when.
    private mutating func noteProgress(_ turn: TurnSnapshot, at time: UInt64) {
        let state: LoopProgress.State
        if detector.stall != nil {
            state = .stalled
        } else if let began = turn.began, began == detector.abandoned {
            state = .ended
        } else if let began = turn.began, began == debuggedTurn {
            state = .held
        } else {
            state = turn.number == 0 && !loop.source.isKnownToRun ? .starting : .running
        }
        let since = detector.stall?.start ?? (state == progress.state ? progress.since : time)
        progress = LoopProgress(label: loop.label, state: state, since: since)
    }

    /// Stops following the loop, and reports a stall or saturation that still lasts as abandoned.
    mutating func leave(at time: UInt64) {
        loop.source.remove()
        if let stall = detector.stall {
            if let ended = loop.recorder.stalledTurnEnd(stall.turnBegan) {
                end(stall, at: ended)
            } else if stallRecord != nil {
                resolvePending()
                dropPending()
            }
            if var record = stallRecord {
                record.state = .abandoned
                record.duration = time &- stall.start
                record.history?.update(among: context.loops, now: time)
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
        // A pending capture is a tracer, too.
        if case .thread(let thread) = target, thread != pendingThread, context.ignoresDebugged, isTraced(thread) {
            detector.measureAnew(from: time)
            debuggedTurn = stall.turnBegan
            return suppress(stall.turnBegan, .debugger)
        }
        debuggedTurn = nil
        // The turn ran at the poll; of a turn that has ended since, the end is known only roughly.
        let overSince = loop.recorder.markStalled(stall.turnBegan).map { _ in time }
        let waits = unobservedRun?.turnBegan == stall.turnBegan ? waits(of: target) : nil
        follow(stall.turnBegan, from: stall.start)
        resolvePending()
        let first = sampled.inspect(target, context, &diagnostician)
        if overSince == nil, !loop.source.isInTurn(wholeStack(of: first.sample)) {
            // The loop has ended or is not followed any more, so nothing is delayed.
            loop.recorder.clearStalled()
            detector.abandon()
            return forgetSamples()
        }
        let isOverNow = overSince != nil || loop.recorder.stalledTurnEnd(stall.turnBegan) != nil
        if isOverNow ? hadWaited(stall, waits: waits) : mayHaveWaited(stall, poll, first.sample, waits: waits) {
            loop.recorder.clearStalled()
            uncertainTurn = stall.turnBegan
            return detector.measureAnew(from: time)
        }
        stallRecord = StallRecord(stall, of: loop, poll, at: time)
        if uncertainTurn == stall.turnBegan { stallRecord?.startUncertainty = stall.start &- stall.turnBegan }
        escalation = context.escalationMultiple.map { stall.start &+ UInt64($0) &* loop.threshold }
        _ = early.finish(stall.turnBegan, isStall: true)
        let history = history(since: stall.start)
        stallRecord?.history = history
        add(first, to: stall, of: target, isFirst: true, overSince: overSince)
    }

    private func history(since start: UInt64) -> StallHistory {
        StallHistory(of: loop, among: context.loops, start: start, now: context.now())
    }

    /// Returns the addresses of a sample's stack; `nil` if it is not whole.
    private func wholeStack(of sample: StallRecord.Sample) -> [UInt64]? {
        guard let stack = try? sample.stack.get(), stack.isComplete else { return nil }
        return stack.frames.map(\.address)
    }

    /// Returns whether the loop may have waited for its own events since the turn's age counts.
    ///
    /// In a run without observers it may have, unless the thread's number of waits has not changed since the last poll,
    /// a threshold ago. The number does not change if the thread computes, or is blocked all the time. The loop may
    /// also have waited just after such a run, which may have ended a moment ago.
    private mutating func mayHaveWaited(
        _ stall: StallDetector.Stall, _ poll: LoopPoll, _ sample: StallRecord.Sample, waits: UInt64?
    ) -> Bool {
        let stack = try? sample.stack.get()
        let isInRun = stack.map { poll.showsUnobservedRun($0.frames.lazy.map(\.address)) } ?? false
        guard isInRun || unobservedRun?.turnBegan == stall.turnBegan else { return false }
        if let waits, waits == unobservedRun?.waits { return false }
        // Read after the capture, because being stopped for it counts as a wait.
        unobservedRun = isInRun ? (stall.turnBegan, self.waits(of: poll.target)) : nil
        return true
    }

    /// Returns the same for a turn that ended during the poll, when the stack shows something else.
    private func hadWaited(_ stall: StallDetector.Stall, waits: UInt64?) -> Bool {
        guard let unobservedRun, unobservedRun.turnBegan == stall.turnBegan else { return false }
        return waits == nil || waits != unobservedRun.waits
    }

    private func waits(of target: CaptureTarget) -> UInt64? {
        guard case .thread(let thread) = target else { return nil }
        return SwitchCounts(thread: thread)?.voluntary
    }

    private mutating func sample(_ stall: StallDetector.Stall, _ target: CaptureTarget, escalates: Bool = false) {
        resolvePending()
        add(sampled.inspect(target, context, &diagnostician), to: stall, of: target, escalates: escalates)
    }

    private mutating func add(
        _ inspection: SampledTurn.Inspection, to stall: StallDetector.Stall, of target: CaptureTarget,
        isFirst: Bool = false, overSince: UInt64? = nil, escalates: Bool = false
    ) {
        guard var record = stallRecord else { return }
        var sample = inspection.sample
        // A thread may end right after its turn. Otherwise it ended within it, and no later moment of the turn is known.
        let turnEnd = sample.isThreadGone ? loop.recorder.stalledTurnEnd(stall.turnBegan) : nil
        if sample.isThreadGone, isFirst, turnEnd == nil {
            // No thread runs the loop any more, so no turn is delayed.
            loop.recorder.clearStalled()
            stallRecord = nil
            detector.abandon()
            forgetSamples()
            return suppress(stall.turnBegan, .threadEnded)
        }
        // The queue may have moved to another thread.
        let isThreadGone = sample.isThreadGone && loop.target == target
        sample.isValid = overSince == nil && !isThreadGone && isWithinTurn(sample, stall.turnBegan)
        // A thread that has ended delays no turn, so there is nothing to escalate.
        if escalates { record.isEscalated = !sample.isThreadGone }
        if !inspection.isUnchanged { sampled.add(sample) }
        record.samples = sampled.samples
        if sample.isPending, case .thread(let thread) = target { pendingThread = thread }
        if isThreadGone {
            stallRecord = record
            detector.abandon()
            return end(stall, at: turnEnd ?? context.now())
        }
        if case .thread(let thread) = target {
            let recorder = loop.recorder
            record.cause = diagnostician.sample(
                thread, stack: try? sample.stack.get(), start: stall.start, isFirst: isFirst,
                turnEnd: { overSince ?? recorder.stalledTurnEnd(stall.turnBegan) }
            )
        }
        record.duration = max(record.duration, context.now() &- stall.start)
        record.captureMethods = context.capturer.methods
        record.unwinder = context.capturer.unwinder
        // In a deadlock every thread matters, and there may be no later opportunity to capture them.
        let isDeadlock = record.cause?.kind == .deadlock && record.otherThreads.isEmpty
        if isDeadlock || context.capturesAllThreads && isFirst {
            record.captureOtherThreads(than: target, with: context)
        }
        record.suppressed = context.suppressed.current
        stallRecord = record
        context.submit(record)
    }

    /// Returns whether the sample was taken before the turn ended.
    ///
    /// A thread that stopped when its long system call returned may end the turn before the watchdog runs again.
    private func isWithinTurn(_ sample: StallRecord.Sample, _ turnBegan: UInt64) -> Bool {
        guard let end = loop.recorder.stalledTurnEnd(turnBegan) else { return true }
        guard let captured = (try? sample.stack.get())?.capturedAt else { return false }
        return captured <= end
    }

    private mutating func end(_ stall: StallDetector.Stall, at end: UInt64) {
        loop.recorder.clearStalled()
        // The thread has left the kernel before it ended the turn, so the stack is there.
        resolvePending()
        dropPending()
        guard var record = stallRecord else { return }
        record.state = .ended
        // The watchdog has seen the turn over its threshold, so the duration is at least the threshold.
        record.duration = max(end &- min(stall.start, end), record.threshold)
        record.history?.update(among: context.loops, now: context.now())
        record.suppressed = context.suppressed.current
        if let thread = record.loop.thread?.id {
            let cause = diagnostician.end(thread, start: stall.start, end: stall.start &+ record.duration)
            record.cause = cause ?? record.cause
        }
        stallRecord = nil
        forgetSamples()
        context.submit(record)
    }

    /// Completes the samples that waited for the thread to leave the kernel, if it has left.
    ///
    /// - Returns: Whether none is left. Until then, their stack will stand for every moment.
    @discardableResult
    private mutating func resolvePending() -> Bool {
        guard let thread = pendingThread else { return true }
        guard let stack = context.capturer.pendingCapture(of: thread) else { return false }
        pendingThread = nil
        sampled.resolvePending(stack, images: context.capturer.images())
        stallRecord?.samples = sampled.samples
        if case .success(let stack) = stack { diagnostician.explainRunning(by: stack) }
        return true
    }

    private mutating func dropPending() {
        guard let thread = pendingThread else { return }
        pendingThread = nil
        context.capturer.cancelPendingCapture(of: thread)
    }

    /// Escalates the stall when it is due, with a sample of that moment.
    ///
    /// - Parameters:
    ///   - target: The threads to sample.
    ///   - time: The time, in monotonic nanoseconds.
    /// - Returns: When the escalation is due, in monotonic nanoseconds; `nil` if none is.
    private mutating func escalate(_ target: CaptureTarget, at time: UInt64) -> UInt64? {
        guard let stall = detector.stall, stallRecord != nil, let due = escalation else { return nil }
        guard time >= due else { return due }
        // A watchdog that is over a threshold late was stopped, and so was the loop. Give the loop one more threshold
        // to recover.
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

// MARK: - Checks

extension LoopSupervisor {
    /// Returns the age from which the loop's turns are checked, in nanoseconds; `nil` for never.
    ///
    /// Checks of a pool would capture all threads, and stops would count as waits of a turn that may wait unobserved.
    private mutating func checkAge(_ poll: LoopPoll) -> UInt64? {
        guard case .thread = poll.target, poll.turn.began != nil || poll.nextHeartbeat == nil else { return nil }
        if let began = poll.turn.began, began == unobservedRun?.turnBegan || began == uncertainTurn { return nil }
        let threshold = loop.threshold
        let recorder = loop.recorder
        return early.age(atTurn: poll.turn.number, threshold: threshold) { recorder.histogram.snapshot() } ?? threshold
    }

    /// Checks a turn that may become a stall.
    private mutating func checkEarly(_ turn: StallDetector.EarlyTurn, _ target: CaptureTarget) {
        guard case .thread(let thread) = target else { return }
        follow(turn.turnBegan, from: turn.start)
        guard resolvePending() else { return }
        let isPermitted = sampled.mayStop && early.mayStop(turn.turnBegan)
        var mayStop = false
        let inspection = sampled.inspect(target, context, &diagnostician) {
            // A stop of a thread that a debugger holds would be refused, and ptrace would no longer be used.
            mayStop = isPermitted && !isTraced(thread)
            return mayStop
        }
        if mayStop, inspection.mayHaveStopped { early.noteStop(of: turn.turnBegan) }
        note(inspection, of: thread, isEarly: true)
    }

    /// Checks a stall between two samples.
    private mutating func check(_ stall: StallDetector.Stall, _ target: CaptureTarget) {
        guard case .thread(let thread) = target else { return }
        guard resolvePending() else { return }
        let inspection = sampled.inspect(target, context, &diagnostician) { [mayStop = sampled.mayStop] in mayStop }
        if inspection.sample.isThreadGone { return add(inspection, to: stall, of: target) }
        note(inspection, of: thread, isEarly: false)
        stallRecord?.samples = sampled.samples
    }

    /// Keeps what a check has seen, if it is a stack of the turn; otherwise the next sample stands for the time.
    private mutating func note(_ inspection: SampledTurn.Inspection, of thread: Int32, isEarly: Bool) {
        let turnBegan = sampled.turnBegan ?? 0
        let isOver = { [recorder = loop.recorder] in recorder.stalledTurnEnd(turnBegan) != nil }
        if inspection.sample.isPending { pendingThread = thread }
        guard !inspection.isUnchanged, isWithinTurn(inspection.sample, turnBegan) else { return }
        guard let stack = sampled.add(inspection, isEarly: isEarly) else { return }
        diagnostician.observe(thread, stack: stack, isOver: isOver)
    }

    /// Begins to sample a turn, unless its samples have begun.
    private mutating func follow(_ turnBegan: UInt64, from start: UInt64) {
        guard sampled.turnBegan != turnBegan || sampled.start != start else { return }
        dropPending()
        sampled = SampledTurn(turnBegan: turnBegan, start: start)
        diagnostician.forget()
    }

    /// Drops the samples of a turn that is over.
    private mutating func forgetSamples() {
        guard let turnBegan = sampled.turnBegan else { return }
        dropPending()
        sampled = SampledTurn()
        diagnostician.forget()
        if early.finish(turnBegan, isStall: false) { loop.noteEarlyStop() }
    }
}

// MARK: - Saturation

extension LoopSupervisor {
    private mutating func watchSaturation(_ poll: LoopPoll, at time: UInt64) {
        switch saturation?.decide(poll.turn, at: time) {
        case .begin(let saturation):
            var record = StallRecord(
                saturation, of: loop, poll, threshold: context.saturationThreshold ?? 0, at: time)
            var sample = context.sample(poll.target, age: time &- saturation.since, mayWait: false)
            sample.isValid = true
            record.samples.append(sample)
            record.captureMethods = context.capturer.methods
            record.unwinder = context.capturer.unwinder
            record.history = history(since: saturation.since)
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
            record.history?.update(among: context.loops, now: time)
            saturationRecord = nil
            context.submit(record)
        case nil:
            break
        }
    }
}
