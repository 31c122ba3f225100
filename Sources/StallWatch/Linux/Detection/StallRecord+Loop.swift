import LinuxSupport
import StackCapture
import StallReports

extension StallRecord {
    init(_ stall: StallDetector.Stall, of loop: LoopMonitor, _ poll: LoopPoll, threshold: UInt64, at now: UInt64) {
        let age = now &- stall.start
        let isOfPool = poll.target == .pool || [.taskExecutor, .threadPool].contains(loop.source.kind)
        let kind: Kind = isOfPool ? .starvation : .stall
        self.init(
            kind, of: loop, poll, turn: stall.turn, nesting: stall.nesting,
            threshold: threshold, age: age
        )
        isGap = stall.isGap
        startUncertainty = poll.turn.began.flatMap { (loop.source as? HeartbeatSource)?.startUncertainty(of: $0) }
    }

    init(
        _ kind: Kind, of loop: LoopMonitor, _ poll: LoopPoll, start: LoopLoad, threshold: UInt64, at now: UInt64
    ) {
        self.init(
            kind, of: loop, poll, turn: start.turns, nesting: poll.turn.nesting, threshold: threshold,
            age: now &- start.time
        )
    }

    private init(
        _ kind: Kind, of loop: LoopMonitor, _ poll: LoopPoll, turn: UInt64, nesting: Int,
        threshold: UInt64, age: UInt64
    ) {
        var thread: StallReport.ThreadDescription?
        if case .thread(let id) = poll.target { thread = .init(ThreadIdentity(id)) }
        var description = Loop(
            label: loop.label, kind: loop.source.kind, turn: turn, nesting: nesting, thread: thread)
        if kind != .saturation, kind != .spinning {
            description.mode = (loop.source as? RunLoopSource)?.modeName(poll.turn.mode)
        }
        self.init(kind, description, threshold: threshold, age: age)
        receiver = loop.source.receiver
    }

    init(_ kind: Kind, _ loop: Loop, threshold: UInt64, age: UInt64) {
        let startedAt = Timestamp(wallClockNanoseconds: wallClockNow() &- age)
        self.init(
            id: ReportIdentifier.make(at: startedAt), kind: kind, loop: loop, threshold: threshold,
            startedAt: startedAt, watchdogLate: age &- min(threshold, age), state: .ongoing, duration: age)
    }
}

/// The turns of a loop over the threshold that ended before the watchdog had found them to be.
struct MissedTurns {
    /// When the turns began to count and ended, in monotonic nanoseconds, oldest first.
    var turns: [(start: UInt64, end: UInt64)] = []
    /// What they were judged by, in nanoseconds.
    var threshold: UInt64
    /// The number of turns that the recorder could not keep.
    var omitted: Int

    /// Why there is no sample of one, for which the watchdog came so many nanoseconds late; `policy` is its thread's, if that
    /// goes before the watchdog.
    static func reason(late: UInt64, omitted: Int, policy: String?) -> String {
        "the turn had ended when the watchdog looked, \(milliseconds(late)) ms after the threshold"
            + (policy.map { "; its thread has the policy \($0), so the watchdog may have had no CPU" } ?? "")
            + (omitted > 0 ? "; \(omitted) turns before it are counted with it" : "")
    }
}

/// The record of what goes on: a class, because each loop has room for six and mostly has none.
final class OpenRecord {
    var record: StallRecord
    /// What the loops did before; `nil` for a thread of a pool.
    var leadUp: LeadUpReader?
    /// When the stall escalates, in monotonic nanoseconds; `nil` if it has escalated or never does.
    var escalation: UInt64?

    init(record: StallRecord, leadUp: LeadUpReader? = nil, escalation: UInt64? = nil) {
        (self.record, self.leadUp, self.escalation) = (record, leadUp, escalation)
    }

    func submit(_ samples: [StallRecord.Sample], _ context: WatchdogContext) {
        var record = record
        record.samples = samples
        record.captureMethods = context.capturer.methods
        record.unwinder = context.capturer.unwinder
        record.leadUp = leadUp?.leadUp
        record.suppressed = context.suppressed.current
        context.submit(record)
    }
}
