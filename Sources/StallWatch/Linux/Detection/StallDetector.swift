/// Decides when a turn of a loop becomes a stall, when to sample it and when to poll the loop again.
///
/// A pure value: the caller passes the loop's state and the time.
///
/// While turns are short, it polls once per threshold T, and at most twice. Each poll is due T after the beginning of
/// the turn that the previous poll saw, or, between turns, T after that poll. So two polls are at least T − L apart,
/// where L is the longest turn, and three polls in a row span more than T: the last is due T after the beginning of a
/// turn that began after the first. No watchdog that is never late can poll less: with turns of T/2, every poll finds a
/// turn that may last forever. Only the loop could cancel a poll, at the price of a system call per turn.
///
/// With checks from an age E on, the same holds for E instead of T. An older turn is checked at growing intervals.
struct StallDetector {
    /// The duration from which a turn is a stall, in nanoseconds.
    var threshold: UInt64
    var schedule = SampleSchedule.standard

    private(set) var state = TurnState.none
    private(set) var lastTurn: UInt64 = 0
    private(set) var lastTurnWasOn = false

    enum TurnState: Equatable {
        case none
        case early(EarlyTurn)
        case stalled(Stall)
        /// Its age counts from a moment after its beginning; `counts`: also if nothing looks at it again.
        case remeasured(turnBegan: UInt64, from: UInt64, counts: Bool)
        /// Its thread or its loop has ended: it is not inspected any more.
        case abandoned(turnBegan: UInt64)
    }

    var stall: Stall? {
        if case .stalled(let stall) = state { return stall }
        return nil
    }

    /// The turn that has been found over the threshold, or measured anew, by when it began, and from when it counts
    /// if it ends unseen, `.max` if it does not; `nil` if there is none.
    var decided: (turn: UInt64, countingFrom: UInt64)? {
        switch state {
        case .none, .early: nil
        case .stalled(let stall): (stall.turnBegan, UInt64.max)
        case .remeasured(let began, let from, let counts): (began, counts ? from : UInt64.max)
        case .abandoned(let began): (began, UInt64.max)
        }
    }

    func isAbandoned(_ turnBegan: UInt64) -> Bool { state == .abandoned(turnBegan: turnBegan) }

    struct Stall: Equatable {
        /// When the turn began, in monotonic nanoseconds, which identifies it.
        var turnBegan: UInt64
        /// When the turn's age begins to count: at its beginning, unless it was measured anew.
        var start: UInt64
        var turn: UInt64
        var nesting: Int
        var isGap = false
        var samples = 0
        /// When the next sample is due; `nil` when the budget is used up.
        var nextSample: UInt64?
        /// When the next check is due; `nil` if the stall is not checked between samples.
        var nextCheck: UInt64?

        fileprivate var nextPoll: UInt64? { nextSample.map { min($0, nextCheck ?? .max) } }
    }

    struct EarlyTurn: Equatable {
        var turnBegan: UInt64
        var start: UInt64
        var nextCheck: UInt64 = 0
    }

    enum Action: Equatable {
        case checkEarly(EarlyTurn)
        case check(Stall)
        case begin(Stall)
        case sample(Stall)
        /// Ends the stall: its turn is over, or another has begun.
        case end(Stall)
    }

    struct Decision: Equatable {
        /// The actions, in order: two if one stalled turn ends and the next one is already over the threshold.
        var actions: [Action] = []
        /// When to poll again, in monotonic nanoseconds; `nil` if the loop wakes the watchdog before anything happens.
        var nextPoll: UInt64?
    }

    /// Makes the turn's age count from a moment on; with `counts`, because nothing excuses it any more, also if it
    /// ends unseen.
    mutating func measureAnew(from now: UInt64, counts: Bool = false) {
        switch state {
        case .stalled(let stall): state = .remeasured(turnBegan: stall.turnBegan, from: now, counts: counts)
        case .early(let early): state = .remeasured(turnBegan: early.turnBegan, from: now, counts: counts)
        default: break
        }
    }

    mutating func abandon() {
        if let stall { state = .abandoned(turnBegan: stall.turnBegan) }
    }

    /// Decides on the loop's state at `now`, with a turn's age from `countingFrom` and checks from the age `checkAge`
    /// on (`nil`: none), all in nanoseconds, and when to poll again.
    mutating func decide(_ loop: TurnSnapshot, at now: UInt64, countingFrom: UInt64 = 0, checkAge: UInt64? = nil)
        -> Decision
    {
        var decision = Decision()
        // A stall also ends when a nested run in a mode without observers begins to wait for its own events.
        if let stall, loop.began != stall.turnBegan || loop.isWaitingUnobserved {
            decision.actions.append(.end(stall))
            state = .none
        }
        defer {
            lastTurn = loop.number
            lastTurnWasOn = loop.began != nil
        }

        if var stall {
            if let due = stall.nextSample, now >= due {
                count(sampleOf: &stall, at: now, isChecked: checkAge != nil)
                decision.actions.append(.sample(stall))
            } else if stall.nextSample != nil, let due = stall.nextCheck, now >= due {
                stall.nextCheck = stall.start &+ schedule.nextCheck(age: now &- stall.start)
                state = .stalled(stall)
                decision.actions.append(.check(stall))
            }
            decision.nextPoll = stall.nextPoll
            return decision
        }

        guard let began = loop.began else {
            // A loop that has turned since the last poll is busy, and likely to turn again at once. A turn that begins
            // after this poll reaches the threshold T from now at the earliest. One poll at that time is enough, and
            // the loop need not wake the watchdog for every turn.
            let interval = min(checkAge ?? threshold, threshold)
            decision.nextPoll = loop.number != lastTurn || lastTurnWasOn ? now &+ interval : nil
            return decision
        }
        if isAbandoned(began) { return decision }
        if loop.isWaitingUnobserved {
            // A nested run in a mode without observers waits for its own events, not for the turn.
            state = .remeasured(turnBegan: began, from: now, counts: false)
        }
        let start = max(began, countingFrom, knownStart(of: began))
        guard now >= start, now - start >= threshold else {
            decision.nextPoll = start &+ threshold
            if let checkAge { decideEarly(began, start: start, at: now, checkAge: checkAge, &decision) }
            return decision
        }
        var stall = Stall(
            turnBegan: began, start: start, turn: loop.number, nesting: loop.nesting, isGap: loop.isGap
        )
        count(sampleOf: &stall, at: now, isChecked: checkAge != nil)
        decision.actions.append(.begin(stall))
        decision.nextPoll = stall.nextPoll
        return decision
    }

    /// Returns the moment from which a turn's age counts, as an earlier poll has found; 0 if none has.
    private func knownStart(of turnBegan: UInt64) -> UInt64 {
        switch state {
        case .remeasured(turnBegan, let from, _): from
        case .early(let early) where early.turnBegan == turnBegan: early.start
        default: 0
        }
    }

    private mutating func decideEarly(
        _ began: UInt64, start: UInt64, at now: UInt64, checkAge: UInt64, _ decision: inout Decision
    ) {
        var turn = EarlyTurn(turnBegan: began, start: start, nextCheck: start &+ checkAge)
        if case .early(let early) = state, early.turnBegan == began, early.start == start { turn = early }
        if now >= turn.nextCheck {
            turn.nextCheck = start &+ schedule.nextCheck(age: now - start)
            decision.actions.append(.checkEarly(turn))
        }
        state = .early(turn)
        decision.nextPoll = min(turn.nextCheck, start &+ threshold)
    }

    /// Makes a sample that was not taken due again at a moment; returns when to poll, `nil` without a stall.
    mutating func putOffSample(until time: UInt64) -> UInt64? {
        guard case .stalled(var stall) = state else { return nil }
        stall.samples -= 1
        stall.nextSample = time
        state = .stalled(stall)
        return stall.nextPoll
    }

    /// Counts a sample, and schedules the next one from its time: no burst of overdue samples follows a late poll.
    private mutating func count(sampleOf stall: inout Stall, at now: UInt64, isChecked: Bool) {
        stall.samples += 1
        stall.nextCheck = isChecked ? stall.start &+ schedule.nextCheck(age: now &- stall.start) : nil
        stall.nextSample = schedule.next(after: stall.samples, age: now &- stall.start).map { stall.start &+ $0 }
        state = .stalled(stall)
    }
}

/// Decides when a stall is sampled: at the threshold, and then at growing intervals, up to a fixed number of samples.
///
/// Between samples, and before the threshold, the turn is *checked* at smaller intervals, which shows when the thread
/// went from one place to the next: the thread is only captured if it has run since the last capture. With a threshold
/// of 250 ms, samples are due at 0.25, 0.375, 0.56, 0.84, 1.3, 1.9, 2.8 … seconds. Twenty samples last for nine
/// minutes; after them an endless stall costs next to nothing.
struct SampleSchedule: Equatable {
    var budget: Int
    /// The ratio of a sample's age to the age of the sample before it, over 1.
    var growth: Double

    /// The ratio of a check's age to that of the check before: it bounds the error of the time in one place to half of
    /// the interval, 4 % of the age, and doubles the age in nine checks.
    var checkGrowth = 1.08

    static let standard = SampleSchedule(budget: 20, growth: 1.5)

    /// The largest age at which a sample is due, in nanoseconds: 146 years.
    static let maximumAge: UInt64 = 1 << 62

    /// Returns the age of the turn at which the next sample is due, in nanoseconds; `nil` if the budget is used up by
    /// `taken` samples, the last of which was taken at `age`, and maybe late.
    func next(after taken: Int, age: UInt64) -> UInt64? {
        guard taken < budget else { return nil }
        return Self.grown(age, by: growth)
    }

    /// Returns the age of the turn at which the next check is due, after a check at `age`, in nanoseconds.
    func nextCheck(age: UInt64) -> UInt64 { Self.grown(age, by: checkGrowth) }

    private static func grown(_ age: UInt64, by factor: Double) -> UInt64 {
        UInt64(min(Double(age) * factor, Double(maximumAge)))
    }
}
