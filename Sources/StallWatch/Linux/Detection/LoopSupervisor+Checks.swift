import LinuxSupport
import StackCapture
import StallReports
import Synchronization

extension LoopSupervisor {
    /// Returns the age from which the loop's turns are checked, in nanoseconds; `nil` for pools, where a check captures
    /// all threads, and for turns that may wait unobserved, where a stop would count as a wait.
    mutating func checkAge(_ poll: LoopPoll) -> UInt64? {
        guard case .thread = poll.target, poll.turn.began != nil || poll.nextHeartbeat == nil else { return nil }
        let mayWaitUnobserved = poll.turn.began == log.began && (log.unobservedRun != nil || log.isUncertain)
        guard !mayWaitUnobserved, !poll.turn.isWaitingUnobserved else { return nil }
        let threshold = detector.threshold
        let age = earlySampling.age(atTurn: poll.turn.number, threshold: threshold, loop.recorder.histogram.snapshot)
        return age ?? threshold
    }

    mutating func checkEarly(_ early: StallDetector.EarlyTurn, _ poll: LoopPoll) {
        guard case .thread(let thread) = poll.target else { return }
        if let wait = toolWait, wait.turn == early.turnBegan, let before = wait.reading {
            guard let now = diagnostician.read(thread), now.isRunnable || now.hasRun(since: before) else { return }
            toolWait?.reading = nil
            return detector.measureAnew(from: context.now())
        }
        beginSamples(from: early.start)
        guard resolvePending() else { return }
        let isPermitted = log.mayStop && (log.wasStopped || earlySampling.credits > 0)
        var mayStop = false
        let inspection = inspect(poll.target) {
            // A stop of a thread that a debugger holds would be refused, and ptrace would no longer be used.
            mayStop = isPermitted && !isTraced(thread)
            return mayStop
        }
        let now = context.now()
        if let due = victimReader.dueTimers(at: now), poll.turnEnd == nil { loop.timerDelays.add(due, at: now) }
        if mayStop, inspection.mayHaveStopped, !log.wasStopped {
            log.wasStopped = true
            earlySampling.spendCredit()
        }
        keep(inspection, of: thread, poll, isEarly: true)
    }

    mutating func check(_ stall: StallDetector.Stall, _ poll: LoopPoll) {
        guard case .thread(let thread) = poll.target, resolvePending() else { return }
        let inspection = inspect(poll.target) { [mayStop = log.mayStop] in mayStop }
        if inspection.sample.isThreadGone { return add(inspection, to: stall, poll) }
        lookAtVictims(of: stall, poll)
        keep(inspection, of: thread, poll, isEarly: false)
    }

    mutating func inspect(_ target: CaptureTarget, mayStop: (() -> Bool)? = nil) -> TurnLog.Inspection {
        var last: (ThreadProbe, ThreadReading)?
        if case .thread(let thread) = target, let reading = diagnostician.read(thread), let probe = diagnostician.probe
        {
            last = (probe, reading)
        }
        let inspection = log.inspect(target, last, context, mayStop: mayStop)
        if inspection.isUnchanged, let reading = inspection.reading { diagnostician.readOwner(reading) }
        return inspection
    }

    /// Keeps what a check has seen, if it is a stack of the turn; otherwise the next sample stands for the time.
    mutating func keep(
        _ inspection: TurnLog.Inspection, of thread: Int32, _ poll: LoopPoll, isEarly: Bool
    ) {
        var sample = inspection.sample
        if sample.isPending { log.pendingThread = thread }
        guard !inspection.isUnchanged else { return }
        let observation = inspection.stack.flatMap {
            diagnostician.observeEarly(thread, inspection.reading, stack: $0)
        }
        let turnEnd = poll.turnEnd
        guard isWithinTurn(sample, turnEnd) else { return }
        guard inspection.stack != nil || sample.isPending else { return log.markFailure(sample) }
        (sample.isValid, sample.isEarly) = (true, isEarly)
        log.add(sample)
        guard turnEnd == nil, let observation else { return }
        log.observe([observation])
        diagnostician.followOwner(observation)
    }

    /// Begins to sample the turn, unless its samples count from the same moment.
    mutating func beginSamples(from start: UInt64) {
        guard log.start != start else { return }
        dropPending()
        log.restart(from: start)
        diagnostician.forgetOwner()
    }

    mutating func forgetSamples() {
        dropPending()
        log.restart(from: log.began)
        diagnostician.forgetOwner()
        guard log.wasStopped else { return }
        log.wasStopped = false
        loop.stoppedEarly.wrappingAdd(1, ordering: .relaxed)
    }

    /// Completes the samples that waited for the thread to leave the kernel; returns `false` if it has not left yet.
    @discardableResult
    mutating func resolvePending() -> Bool {
        guard let thread = log.pendingThread else { return true }
        guard let stack = context.capturer.pendingCapture(of: thread) else { return false }
        log.resolvePending(stack, images: context.capturer.images()) { [diagnostician] in
            diagnostician.explain(&$0, by: $1)
        }
        return true
    }

    mutating func dropPending() {
        if let thread = log.pendingThread.take() { context.capturer.cancelPendingCapture(of: thread) }
    }
}
