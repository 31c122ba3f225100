/// Decides which loops the watchdog polls in a pass, so that a pass costs what is due in it, and not what is watched.
///
/// A loop is polled when it is due, or after half of that time, with another one: a thousand loops that turn need no
/// thousand wake-ups. A loop that *rests* is not due: it waits, and begins a turn without a word unless the watchdog is
/// parked. So each pass looks at the marks of all loops, some 30 ns for each. A main queue that its run loop serves rests,
/// too, and each pass polls it: the run loop may begin a run that does not serve it.
struct PollSchedule {
    private struct Entry {
        let recorder: TurnRecorder
        var last = PollOutcome(due: 0, mark: (0, 0), isResting: false, mayPark: false)
        /// When it may be polled with another one.
        var early: UInt64 = 0
    }

    private var entries: [Entry] = []

    /// Adds a loop, which is due at once, as the last.
    mutating func add(_ recorder: TurnRecorder) { entries.append(Entry(recorder: recorder)) }

    mutating func remove(where isRemoved: (TurnRecorder) -> Bool) { entries.removeAll { isRemoved($0.recorder) } }

    /// Returns whether a loop is to be polled in a pass; decides itself for one that needs no more than its mark.
    mutating func needsPoll(_ index: Int, at now: UInt64) -> Bool {
        let (recorder, last) = (entries[index].recorder, entries[index].last)
        if recorder.takeNews() { return true }
        let mark = recorder.mark
        guard entries[index].early <= now || last.isResting && mark != last.mark else { return false }
        guard let interval = last.plainInterval, mark.began == 0 else { return true }
        // It has turned since, and is likely to do so again: that would end the sleep of a parked watchdog.
        let isBusy = mark.turns != last.mark.turns || last.mark.began != 0
        let due = isBusy ? now &+ interval : .max
        let outcome = PollOutcome(due: due, mark: mark, plainInterval: interval, isResting: !isBusy, mayPark: !isBusy)
        update(index, outcome, at: now)
        return false
    }

    /// Takes over what a poll of a loop, at a time in monotonic nanoseconds, has found.
    mutating func update(_ index: Int, _ outcome: PollOutcome, at now: UInt64) {
        let due = outcome.due
        entries[index].last = outcome
        entries[index].early = outcome.isForeign ? 0 : due == .max ? .max : due - (due - min(now, due)) / 2
    }

    /// When the next loop is due, in monotonic nanoseconds.
    var next: UInt64 { entries.lazy.map(\.last.due).min() ?? .max }

    /// Returns how to sleep from `now` until `deadline`, both in monotonic nanoseconds.
    func sleep(at now: UInt64, until deadline: UInt64) -> WatchdogSleep {
        let loops = entries.lazy.map { entry in
            WatchdogSleep.FollowedLoop(
                threshold: entry.recorder.threshold, mayWake: entry.last.isResting, mayPark: entry.last.mayPark,
                isLoadFollowed: entry.last.isLoadFollowed)
        }
        return WatchdogSleep(loops, at: now, until: deadline)
    }

    /// Whether no loop has begun a turn since its last poll, and none is in one that is to be polled.
    var mayPark: Bool {
        entries.allSatisfy { entry in
            let began = entry.recorder.mark.began
            return began == 0 || entry.last.mayPark && began == entry.last.mark.began
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
    /// Whether another loop decides when this one is to be polled, so that each pass does.
    var isForeign = false
    /// Whether the loop wakes a parked watchdog before anything can happen.
    var mayPark: Bool
}
