/// Decides which loops the watchdog polls in a pass, so that a pass costs what is due in it, and not what is watched.
///
/// A loop is polled when it is due, or after half of that time, with another one: a thousand loops that turn need no
/// thousand wake-ups. A loop that *rests* is not due: it waits, and begins a turn without a word unless the watchdog is
/// parked. So the watchdog looks at such loops from time to time: two loads each. The same look finds the loops that have
/// called the watchdog.
struct PollSchedule {
    /// The least time between two looks at all loops, in nanoseconds per loop: a look takes some 30.
    static let lookInterval: UInt64 = 2_000

    private struct Entry {
        let recorder: TurnRecorder
        var due: UInt64 = 0
        /// When it may be polled with another one.
        var early: UInt64 = 0
        /// The recorder's mark at the last poll.
        var mark: (began: UInt64, turns: UInt64) = (0, 0)
        var rest: Rest?
        /// Whether the last poll found no turn that is to be polled.
        var mayPark = false
        /// The time between polls that find no turn, if these have nothing else to do.
        var interval: UInt64?
    }

    private struct Rest: Hashable {
        var threshold: UInt64
        var isLoadFollowed: Bool
    }

    private var entries: [Entry] = []
    private var resting: [Rest: Int] = [:]
    /// The number of entries that may not park.
    private var turning = 0
    private var lastLook: UInt64 = 0
    private var isLooking = true
    /// When the next loop is due, in monotonic nanoseconds.
    private(set) var next = UInt64.max

    /// Adds a loop, which is due at once, as the last.
    mutating func add(_ recorder: TurnRecorder) {
        entries.append(Entry(recorder: recorder))
        turning += 1
    }

    mutating func remove(where isRemoved: (Int) -> Bool) {
        for index in entries.indices where isRemoved(index) { uncount(index) }
        entries = entries.indices.filter { !isRemoved($0) }.map { entries[$0] }
    }

    /// Begins a pass at a time in monotonic nanoseconds; `hasRung`: a loop may have called the watchdog.
    mutating func begin(at now: UInt64, hasRung: Bool) {
        let interval = min(UInt64(entries.count) &* Self.lookInterval, shortestRest ?? .max)
        isLooking = hasRung || now &- lastLook >= interval
        if isLooking { lastLook = now }
        next = .max
    }

    /// The shortest threshold of the loops that rest: a turn of one may be late after that time.
    private var shortestRest: UInt64? { resting.keys.lazy.map(\.threshold).min() }

    /// Returns whether a loop is to be polled in this pass; decides itself for one that needs no more than its mark.
    mutating func needsPoll(_ index: Int, at now: UInt64) -> Bool {
        let entry = entries[index]
        let isDue = entry.early <= now
        guard isDue || isLooking else {
            next = min(next, entry.due)
            return false
        }
        if entry.recorder.takeNews() { return true }
        let mark = entry.recorder.mark
        guard isDue || entry.rest != nil && mark != entry.mark else {
            next = min(next, entry.due)
            return false
        }
        guard let interval = entry.interval, mark.began == 0 else { return true }
        // It has turned since, and is likely to do so again.
        let isBusy = mark.turns != entry.mark.turns || entry.mark.began != 0
        entries[index].mark = mark
        let due = isBusy ? now &+ interval : .max
        let outcome = PollOutcome(due: due, mark: mark, plainInterval: interval, isResting: !isBusy, mayPark: true)
        update(index, outcome, at: now)
        return false
    }

    /// Takes over what a poll of a loop, at a time in monotonic nanoseconds, has found.
    mutating func update(_ index: Int, _ outcome: PollOutcome, at now: UInt64) {
        uncount(index)
        let rest = Rest(threshold: entries[index].recorder.threshold, isLoadFollowed: outcome.isLoadFollowed)
        entries[index].due = outcome.due
        entries[index].early = outcome.due == .max ? .max : outcome.due - (outcome.due - min(now, outcome.due)) / 2
        (entries[index].mark, entries[index].interval) = (outcome.mark, outcome.plainInterval)
        entries[index].rest = outcome.isResting ? rest : nil
        entries[index].mayPark = outcome.mayPark
        if outcome.isResting { resting[rest, default: 0] += 1 }
        if !outcome.mayPark { turning += 1 }
        next = min(next, outcome.due)
    }

    private mutating func uncount(_ index: Int) {
        if !entries[index].mayPark { turning -= 1 }
        guard let rest = entries[index].rest, let count = resting[rest] else { return }
        resting[rest] = count == 1 ? nil : count - 1
    }

    /// Returns how to sleep from `now` until `deadline`, both in monotonic nanoseconds.
    func sleep(at now: UInt64, until deadline: UInt64) -> WatchdogSleep {
        var loops = resting.keys.map { rest in
            WatchdogSleep.FollowedLoop(
                threshold: rest.threshold, mayWake: true, mayPark: true, isLoadFollowed: rest.isLoadFollowed)
        }
        loops.append(.init(threshold: .max, mayWake: false, mayPark: turning == 0, isLoadFollowed: false))
        var sleep = WatchdogSleep(loops, at: now, until: deadline)
        if !sleep.isParked, let shortestRest { sleep.deadline = min(sleep.deadline, lastLook &+ shortestRest) }
        return sleep
    }

    /// Whether no loop has begun a turn since its last poll, and none is in one that is to be polled.
    var mayPark: Bool {
        entries.allSatisfy { entry in
            let began = entry.recorder.mark.began
            return began == 0 || entry.mayPark && began == entry.mark.began
        }
    }

    /// When the earliest turn in progress began, in monotonic nanoseconds.
    var firstBegin: UInt64? { entries.lazy.map(\.recorder.mark.began).filter { $0 > 0 }.min() }

    /// The shortest threshold of the loops, in nanoseconds; 0 without loops.
    var threshold: UInt64 { entries.lazy.map(\.recorder.threshold).min() ?? 0 }
}

/// What a poll of a loop has found, as far as it decides when to poll the loop again.
struct PollOutcome {
    /// When the next poll is due, in monotonic nanoseconds; `.max` if nothing is.
    var due: UInt64
    /// When the turn began, 0 between turns, and the number of turns.
    var mark: (began: UInt64, turns: UInt64)
    /// The time between polls that find no turn, in nanoseconds, if such a poll only looks for one; else `nil`.
    var plainInterval: UInt64?
    /// Whether nothing but the loop's load is to be polled until another turn begins.
    var isResting: Bool
    var isLoadFollowed = false
    /// Whether the loop wakes a parked watchdog before anything can happen.
    var mayPark: Bool
}
