/// Decides, for one loop, when a turn has become a stall, when to sample it and when to look again.
///
/// A pure value: it is told what the loop does and what time it is, and knows no clock, no thread and no loop.
///
/// How often it has to look, with a threshold T: while turns are short, once per T. Each look is due T after the beginning
/// of a turn that the look before it saw, or, between turns, T after that look. So two looks are at least T − L apart,
/// where L is the longest turn. For one loop, a look, the next and the one after that span more than T, because the last
/// is due to a turn that began after the first: two per T at most.
///
/// No watchdog that is never late can do with less. Let turns of T/2 follow one another. Whenever it looks, a turn is
/// on, which may be one that lasts for ever: so it has to look again when that turn would reach T. By then another turn is
/// on, T/2 old, of which the same is true. Only the loop could tell it not to look, at the price of a system call a turn.
struct StallDetector {
    /// How long a turn may take, in nanoseconds.
    var threshold: UInt64
    let schedule: SampleSchedule

    private(set) var stall: Stall?
    /// The number of the turn that the last look saw.
    private var lastTurn: UInt64 = 0
    /// Whether that turn was on.
    private var lastTurnWasOn = false
    /// The turn whose age counts from later than its beginning, and from when.
    private var measuredAnew: (turnBegan: UInt64, from: UInt64)?
    /// When the turn began that is not looked at any more.
    private(set) var abandoned: UInt64?

    init(threshold: UInt64, schedule: SampleSchedule = .standard) {
        self.threshold = threshold
        self.schedule = schedule
    }

    /// A turn over the threshold.
    struct Stall: Equatable {
        /// When the turn began, in monotonic nanoseconds.
        ///
        /// Also the turn's identity.
        var turnBegan: UInt64
        /// From when its age counts: the turn's beginning, unless it had to be measured anew.
        var start: UInt64
        /// The turn's number.
        var turn: UInt64
        /// Runs of the loop inside a callout of the same loop; 0 is the outermost.
        var nesting: Int
        /// The number of the mode that the innermost run is in; 0 if that mode was not named.
        var mode: UInt8 = 0
        /// Whether the turn is the time between two runs of the loop.
        var isGap = false
        var samples = 0
        /// When the next sample is due; `nil` when the budget is used up.
        var nextSample: UInt64?
    }

    /// What has to be done now.
    enum Action: Equatable {
        /// A stall: report it, with a first sample.
        case begin(Stall)
        /// The stall goes on and another sample is due.
        case sample(Stall)
        /// The stalled turn is over, or another has begun.
        case end(Stall)
    }

    /// What a look led to.
    struct Decision: Equatable {
        /// Done in this order.
        ///
        /// A turn that ends and one that is already over the threshold make two.
        var actions: [Action] = []
        /// When to look again, in monotonic nanoseconds; `nil` when nothing can happen before the loop begins a turn
        /// (or ends the stalled one), both of which wake the watchdog.
        var nextPoll: UInt64?
    }

    /// The stall is not one after all: its turn counts from `now` on.
    mutating func measureAnew(from now: UInt64) {
        guard let stall else { return }
        measuredAnew = (turnBegan: stall.turnBegan, from: now)
        self.stall = nil
    }

    /// The stall's thread is gone: its turn will never end, and is not looked at any more.
    mutating func abandon() {
        abandoned = stall?.turnBegan
        stall = nil
    }

    /// Decides what a look at the loop at `now` means.
    ///
    /// - Parameter countingFrom: What a turn did before this moment does not count.
    mutating func decide(_ loop: TurnSnapshot, at now: UInt64, countingFrom: UInt64 = 0) -> Decision {
        var decision = Decision()
        // A stall is also over when a nested run in a mode without observers has begun to wait for its own events.
        if let stall, loop.began != stall.turnBegan || loop.isWaitingUnobserved {
            decision.actions.append(.end(stall))
            self.stall = nil
        }
        defer {
            lastTurn = loop.number
            lastTurnWasOn = loop.began != nil
        }

        if var stall {
            if let due = stall.nextSample, now >= due {
                take(sampleOf: &stall, at: now)
                decision.actions.append(.sample(stall))
            }
            decision.nextPoll = stall.nextSample
            return decision
        }

        guard let began = loop.began else {
            // A loop that has turned since the last look is busy, and likely to turn again at once. A turn that begins
            // after this look is not late before the threshold has passed from here, so one look then is soon enough,
            // and the loop need not wake the watchdog for every turn.
            decision.nextPoll = loop.number != lastTurn || lastTurnWasOn ? now &+ threshold : nil
            return decision
        }
        if loop.isWaitingUnobserved {
            // A nested run in a mode without observers: what it waits for are its own events.
            measuredAnew = (turnBegan: began, from: now)
        }
        if began == abandoned { return decision }
        var start = max(began, countingFrom)
        if let measuredAnew, measuredAnew.turnBegan == began { start = max(start, measuredAnew.from) }
        guard now >= start, now - start >= threshold else {
            decision.nextPoll = start &+ threshold
            return decision
        }
        var stall = Stall(
            turnBegan: began, start: start, turn: loop.number, nesting: loop.nesting, mode: loop.mode, isGap: loop.isGap
        )
        take(sampleOf: &stall, at: now)
        decision.actions.append(.begin(stall))
        decision.nextPoll = stall.nextSample
        return decision
    }

    /// Counts a sample and says when the next one is due.
    ///
    /// That is told from the moment of this one. So a look that came late (the whole process was stopped) is not followed
    /// by a burst of samples whose time has passed.
    private mutating func take(sampleOf stall: inout Stall, at now: UInt64) {
        stall.samples += 1
        stall.nextSample = schedule.next(after: stall.samples, age: now &- stall.start).map { stall.start &+ $0 }
        self.stall = stall
    }
}
