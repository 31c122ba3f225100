import LinuxSupport
import StackCapture
import StallReports
import Synchronization

struct LoopSupervisor {
    let loop: LoopMonitor
    var detector: StallDetector
    /// `nil` if the loop does not report its waits, or saturation is not to be found.
    private var saturation: SaturationSupervisor?
    private var spin: SpinSupervisor?
    private var modes: ModeStarvationSupervisor?
    private var notRun: NotRunSupervisor?
    /// Whether the next poll may be for the loop's load only, which must not delay the check of a turn that begins.
    private(set) var isLoadFollowed = false
    var earlySampling = EarlySampling()
    var log = TurnLog.none
    /// The stall that the turn is; `nil` below the threshold.
    var open: OpenRecord?
    /// What waits for the loop, of the stall that is open.
    var victims = VictimLog()
    let victimReader: VictimReader
    /// The last wait of a tool that was no stall.
    var toolWait: ToolWait.Look?
    /// The last late heartbeat of the task pool that was no stall.
    var poolWait: PoolWait?
    /// When the pool may be looked at again for another heartbeat, in monotonic nanoseconds.
    var poolRestsUntil: UInt64 = 0
    /// The last stall, while the turns that follow it without a wait are counted.
    var followed: FollowedStall?
    private(set) var progress: LoopProgress
    /// Whether the last poll found nothing to poll for: the loop wakes the watchdog before anything can happen.
    private var isQuiet = false
    /// When the turn of the last poll began, 0 between turns, and the number of turns then.
    private var mark: (began: UInt64, turns: UInt64) = (0, 0)
    /// The time between polls that find no turn, in nanoseconds.
    private var interval: UInt64 = 0
    /// The number of the loop's unseen turns that have been reported or left out.
    private var unseen: UInt64 = 0
    /// The last turn that a poll found over the threshold, or measured anew: see ``StallDetector/decided``.
    private(set) var decided: (turn: UInt64, countingFrom: UInt64) = (0, 0)
    /// Times before which turns do not count, or ended as they should, in monotonic nanoseconds.
    private var (countingFrom, excusedUntil): (UInt64, UInt64) = (0, 0)
    /// When the last poll was, in monotonic nanoseconds.
    private var lastPoll: UInt64 = 0
    /// The last turn whose stall a stop of the process has interrupted, and since when it was one: it is one until it ends.
    private var interrupted: (turn: UInt64, since: UInt64)?
    var diagnostician: StallDiagnostician
    unowned let context: WatchdogContext

    init(_ loop: LoopMonitor, _ context: WatchdogContext) {
        self.loop = loop
        self.context = context
        detector = StallDetector(threshold: loop.threshold)
        progress = LoopProgress(label: loop.label, state: .starting, since: context.now())
        diagnostician = StallDiagnostician(threads: context.threads, waits: loop.recorder.waits)
        diagnostician.probe = loop.takeFiles()
        victimReader = VictimReader(loop.source)
        followPeriods()
    }

    /// Begins to look for periods of saturation, of spins, of a mode that waits, and without a run.
    private mutating func followPeriods() {
        // Only a run loop reports its waits.
        if loop.source.kind == .runLoop, let threshold = context.options.saturationThreshold {
            saturation = SaturationSupervisor(threshold: threshold)
            spin = SpinSupervisor()
        }
        if let rule = context.options.modeRule, let runLoop = loop.source as? RunLoopSource, runLoop.servesDefaultMode {
            modes = ModeStarvationSupervisor(rule: rule, runLoop.makeModeReader())
            notRun = NotRunSupervisor(runLoop.makeModeReader())
        }
    }

    /// Returns what the last poll, after which the next one is due at a time, has found.
    func outcome(due: UInt64) -> PollOutcome {
        let isPlain = loop.source.kind == .probe && log.began == 0
        // It waits, its stall has used up its samples and will ring at its end, or its thread has ended.
        let mayPark =
            mark.began == 0
            ? isQuiet || !isPlain : mark.began == detector.stall?.turnBegan || detector.isAbandoned(mark.began)
        return PollOutcome(
            due: due, mark: mark, plainInterval: isPlain ? interval : nil, isResting: isQuiet,
            isLoadFollowed: isLoadFollowed, isForeign: isQuiet && mark.began == 0 && loop.source.kind == .mainQueue,
            mayPark: mayPark)
    }

    /// Polls the loop, carries out the decisions of the detectors, and returns when to poll again.
    ///
    /// That is `.max` if the loop wakes the watchdog before anything can happen. The age of a turn counts from
    /// `countingFrom`, because of `reason`. Times are in monotonic nanoseconds.
    mutating func poll(
        at time: UInt64, countingFrom: UInt64, excusedUntil: UInt64 = 0, suppressed reason: SuppressionReason
    ) -> UInt64 {
        if countingFrom > self.countingFrom {
            (toolWait, poolWait) = (nil, nil)
            if reason == .processStopped { interrupt(until: countingFrom) }
            if reason == .paused { pause(until: countingFrom) }
        }
        (self.countingFrom, self.excusedUntil, lastPoll) = (countingFrom, excusedUntil, time)
        // Before the poll, which decides on a turn that ends after this.
        let missed = takeMissed()
        let poll = loop.poll(at: time)
        let goesOn = poll.turn.began != nil
        if let followed, time >= followed.due(besideTurn: goesOn) { reportFollowed(at: time) }
        if let missed { report(missed, poll, at: time) }
        mark = (poll.turn.began ?? 0, poll.turn.number)
        // A turn that is a stall keeps the threshold that it was judged by, which the app may change at any time.
        if poll.turn.began == nil || poll.turn.began != detector.stall?.turnBegan {
            detector.threshold = loop.threshold
        }
        let checkAge = checkAge(poll)
        interval = min(checkAge ?? detector.threshold, detector.threshold)
        var decision = detector.decide(poll.turn, at: time, countingFrom: countingFrom, checkAge: checkAge)
        // The stall of an earlier turn ends before the current turn is followed.
        if case .end(let stall) = decision.actions.first {
            end(stall, at: poll.stallEnd ?? time, mayBeFollowed: true)
        }
        follow(poll.turn)
        for action in decision.actions {
            switch action {
            case .checkEarly(let turn): context.look(again: true) { context.timeCheck { checkEarly(turn, poll) } }
            case .check(let stall): context.look(again: true) { context.timeCheck { check(stall, poll) } }
            case .begin(let stall):
                if let next = beginInTime(stall, poll, at: time) { decision.nextPoll = next }
            case .sample(let stall):
                guard !context.look(again: true, { sample(stall, poll) }) else { continue }
                decision.nextPoll = detector.putOffSample(until: context.nextLook(at: time))
            case .end: break
            }
        }
        if detector.stall == nil, log.began != 0 {
            // The watchdog counts a stopped process once for all turns, but a pause for each turn.
            if reason == .paused, log.began < countingFrom, time &- log.began >= detector.threshold { suppress(reason) }
            prepare(poll.target, at: time)
        }
        let nextLoad = min(
            saturation?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max,
            spin?.poll(poll, of: loop, context, countingFrom: countingFrom, &diagnostician.probe) ?? .max,
            modes?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max,
            notRun?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max)
        isLoadFollowed = nextLoad != .max
        let nextEscalation = escalate(poll, at: time)
        let nextLook = followVictims(poll, at: time)
        updateProgress(poll, at: time)
        let nextPoll = min(
            decision.nextPoll ?? .max, nextEscalation ?? .max, poll.nextHeartbeat ?? .max, nextLook,
            followed?.due(besideTurn: goesOn) ?? .max)
        isQuiet = nextPoll == .max
        return min(nextPoll, nextLoad)
    }

    /// Ends what is open as it was at the last poll: the time since does not count, as the process was stopped `until` now.
    private mutating func interrupt(until resumed: UInt64) {
        // A turn that was over by then ended before the stop: all threads go on at about the same time.
        let isOver = loop.recorder.stallEnd.map { $0 &+ GapDetector.tolerance < resumed } ?? false
        if let stall = detector.stall, !isOver {
            if interrupted?.turn != stall.turnBegan { interrupted = (stall.turnBegan, stall.start) }
            measureAnew(stall, from: resumed)
        }
        leavePeriods(at: lastPoll)
        followPeriods()
    }

    /// Ends the stall of a turn in which the app has paused the monitor `until` now: the work in the pause may take long, and
    /// neither a supervisor nor an escalation may end the process for it.
    private mutating func pause(until resumed: UInt64) {
        interrupted = nil
        guard let stall = detector.stall, loop.recorder.stallEnd == nil else { return }
        measureAnew(stall, from: resumed)
    }

    /// Reports the open stall as it was at the last poll; what is left of its turn counts from a moment on.
    private mutating func measureAnew(_ stall: StallDetector.Stall, from resumed: UInt64) {
        dropPending()
        leave(stall, at: lastPoll)
        loop.recorder.clearStalled()
        open = nil
        forgetSamples()
        detector.measureAnew(from: resumed, counts: true)
    }

    /// Takes the turns over the threshold that ended before a poll decided on them.
    private mutating func takeMissed() -> MissedTurns? {
        decided = detector.decided ?? decided
        let count = loop.recorder.unseen.count
        guard count != unseen else { return nil }
        let turns = loop.recorder.unseen.turns(endedSince: 0, skipping: unseen)
        var missed = MissedTurns(
            threshold: loop.threshold, omitted: Int(count - unseen) - min(turns.count, Int(count - unseen)))
        unseen += UInt64(missed.omitted + turns.count)
        for turn in turns {
            let known = turn.began == decided.turn ? decided.countingFrom : 0
            let start = max(turn.began, countingFrom, loop.watchedFrom, known)
            guard let ended = turn.ended, ended > max(start, excusedUntil), ended - start >= missed.threshold
            else { continue }
            missed.turns.append((start, ended))
        }
        return missed.turns.isEmpty ? nil : missed
    }

    private mutating func follow(_ current: TurnSnapshot) {
        let began = current.began ?? 0
        if began != log.began {
            forgetSamples()
            log = TurnLog(began: began)
        }
        if current.isWaitingUnobserved { log.unobservedRun = UnobservedRun() }
    }

    private mutating func prepare(_ target: CaptureTarget, at time: UInt64) {
        guard case .thread(let thread) = target else { return }
        diagnostician.prepare(thread, turn: log.began, threshold: detector.threshold, now: time)
    }

    /// Looks at what waits for the loop, unless the turn has ended meanwhile.
    mutating func lookAtVictims(of stall: StallDetector.Stall, _ poll: LoopPoll) {
        guard open != nil else { return }
        let now = context.now()
        let look = victimReader.look(at: now, context.operations(since: stall.start, at: now), inGap: stall.isGap)
        guard poll.turnEnd == nil else { return }
        victims.add(look)
        loop.timerDelays.add(victims.dueTimers, at: now)
    }

    /// Looks at what waits once more when that is due; returns when the next look is, `.max` if there is none.
    ///
    /// The looks go on beside the samples: while one is pending, between them, and after the last.
    private mutating func followVictims(_ poll: LoopPoll, at time: UInt64) -> UInt64 {
        guard let stall = detector.stall, victimReader.readsLoop, let last = victims.lastLook, open != nil else {
            return .max
        }
        let due = VictimLog.nextLook(after: last, from: stall.start)
        guard time >= due else { return due }
        context.look(again: true) { lookAtVictims(of: stall, poll) }
        return VictimLog.nextLook(after: max(time, victims.lastLook ?? time), from: stall.start)
    }

    /// Reports the last stall with the turns that have followed it by now.
    mutating func reportFollowed(at time: UInt64) {
        guard let stall = followed.take() else { return }
        let later = stall.laterTurns(of: loop.recorder.turns(endedSince: stall.end, now: time), at: time)
        stall.open.record.victims?.laterTurns = later.count > 0 ? later.count : nil
        stall.open.record.victims?.laterTurnsMilliseconds = later.count > 0 ? milliseconds(later.time) : nil
        stall.open.submit(stall.samples, context)
    }

    private mutating func updateProgress(_ poll: LoopPoll, at time: UInt64) {
        let state: LoopProgress.State
        let stalledSince = interrupted.flatMap { $0.turn == log.began ? $0.since : nil } ?? detector.stall?.start
        if stalledSince != nil {
            state = .stalled
        } else if log.began != 0, detector.isAbandoned(log.began) {
            state = .ended
        } else if log.isDebugged {
            state = .held
        } else {
            state = poll.isStarting ? .starting : .running
        }
        let since = stalledSince ?? (state == progress.state ? progress.since : time)
        progress = LoopProgress(label: loop.label, state: state, since: since)
    }

    /// Stops following the loop; reports what still lasts as abandoned, but a turn of the thread `stopper` as over.
    mutating func leave(at time: UInt64, stoppedBy stopper: Int32? = nil) {
        let isStoppedInTurn = stopper.map { loop.target == .thread($0) } ?? false
        loop.source.remove()
        reportFollowed(at: time)
        if let missed = takeMissed() { report(missed, loop.poll(at: time, mayBeat: false), at: time) }
        if let stall = detector.stall {
            if let ended = loop.recorder.stallEnd ?? (isStoppedInTurn ? time : nil) {
                end(stall, at: ended)
            } else {
                leave(stall, at: time)
            }
        }
        // Also of a turn that is no stall: a stop that stays would give its stack to a later turn.
        dropPending()
        leavePeriods(at: time)
    }

    /// Reports the open stall as one whose end is not known, as it was at a moment.
    private mutating func leave(_ stall: StallDetector.Stall, at time: UInt64) {
        guard let duration = open?.record.duration else { return }
        resolvePending()
        open?.record.state = .abandoned
        open?.record.duration = max(time &- stall.start, duration)
        open?.record.victims = victims.victims(from: stall.start, until: time)
        open?.leadUp?.update(now: time, isWatched: context.isWatched)
        submit()
    }

    private mutating func leavePeriods(at time: UInt64) {
        saturation?.leave(context, at: time)
        spin?.leave(context, at: time)
        modes?.leave(context, at: time)
        notRun?.leave(context, at: time)
    }

    mutating func suppress(_ reason: SuppressionReason) {
        guard !log.isSuppressed else { return }
        log.isSuppressed = true
        if loop.source.receiver == nil { context.suppressed.add(reason) }
    }
}
