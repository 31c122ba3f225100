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
    /// Whether the next poll may be for the loop's load only, which must not delay the check of a turn that begins.
    private(set) var isLoadFollowed = false
    var earlySampling = EarlySampling()
    var log = TurnLog.none
    /// The stall that the turn is; `nil` below the threshold.
    var open: OpenRecord?
    private(set) var progress: LoopProgress
    /// Whether the last poll found nothing to poll for: the loop wakes the watchdog before anything can happen.
    private var isQuiet = false
    var diagnostician: StallDiagnostician
    unowned let context: WatchdogContext

    init(_ loop: LoopMonitor, _ context: WatchdogContext) {
        self.loop = loop
        self.context = context
        detector = StallDetector(threshold: loop.threshold)
        progress = LoopProgress(label: loop.label, state: .starting, since: context.now())
        diagnostician = StallDiagnostician(threads: context.threads, waits: loop.recorder.waits)
        diagnostician.probe = loop.takeFiles()
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
        return began == nil || began == detector.stall?.turnBegan || began.map(detector.isAbandoned) == true
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
            case .checkEarly(let turn): context.timeCheck { checkEarly(turn, poll) }
            case .check(let stall): context.timeCheck { check(stall, poll) }
            case .begin(let stall): begin(stall, poll, at: time)
            case .sample(let stall): sample(stall, poll)
            case .end: break
            }
        }
        if detector.stall == nil, log.began != 0 {
            // The watchdog counts a stopped process once for all turns, but a pause for each turn.
            if reason == .paused, log.began < countingFrom, time &- log.began >= loop.threshold { suppress(reason) }
            prepare(poll.target, at: time)
        }
        let nextLoad = min(
            saturation?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max,
            spin?.poll(poll, of: loop, context, countingFrom: countingFrom, &diagnostician.probe) ?? .max,
            modes?.poll(poll, of: loop, context, countingFrom: countingFrom) ?? .max)
        isLoadFollowed = nextLoad != .max
        let nextEscalation = escalate(poll, at: time)
        updateProgress(poll, at: time)
        let nextPoll = min(decision.nextPoll ?? .max, nextEscalation ?? .max, poll.nextHeartbeat ?? .max)
        isQuiet = nextPoll == .max
        return min(nextPoll, nextLoad)
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
        diagnostician.prepare(thread, turn: log.began, threshold: loop.threshold, now: time)
    }

    private mutating func updateProgress(_ poll: LoopPoll, at time: UInt64) {
        let state: LoopProgress.State
        if detector.stall != nil {
            state = .stalled
        } else if log.began != 0, detector.isAbandoned(log.began) {
            state = .ended
        } else if log.isDebugged {
            state = .held
        } else {
            state = poll.isStarting ? .starting : .running
        }
        let since = detector.stall?.start ?? (state == progress.state ? progress.since : time)
        progress = LoopProgress(label: loop.label, state: state, since: since)
    }

    /// Stops following the loop; reports what still lasts as abandoned, but a turn of the thread `stopper` as over.
    mutating func leave(at time: UInt64, stoppedBy stopper: Int32? = nil) {
        let isStoppedInTurn = stopper.map { loop.target == .thread($0) } ?? false
        loop.source.remove()
        if let stall = detector.stall {
            if let ended = loop.recorder.stallEnd ?? (isStoppedInTurn ? time : nil) {
                end(stall, at: ended)
            } else if open != nil {
                resolvePending()
                open?.record.state = .abandoned
                open?.record.duration = time &- stall.start
                open?.leadUp.update(among: context.loops, now: time)
                submit()
            }
        }
        // Also of a turn that is no stall: a stop that stays would give its stack to a later turn.
        dropPending()
        saturation?.leave(context, at: time)
        spin?.leave(context, at: time)
        modes?.leave(context, at: time)
    }

    mutating func suppress(_ reason: SuppressionReason) {
        guard !log.isSuppressed else { return }
        log.isSuppressed = true
        context.suppressed.add(reason)
    }
}
