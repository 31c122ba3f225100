struct LeadUpReader {
    static let maximumOthers = 16

    private(set) var leadUp: LeadUp
    /// The other loops of ``leadUp``, in its order: several may have one label.
    private let loops: [LoopMonitor]
    /// The moment from which turns count, in monotonic nanoseconds.
    private let since: UInt64

    /// Reads the turns of all loops at `now`, before and since a turn that counts from `start`: at most 6 KiB each.
    ///
    /// `isAmong`: Whether the loop is one of them, which would take a search. As many as there are may stall at once.
    init(of loop: LoopMonitor, among loops: [LoopMonitor], isAmong: Bool, start: UInt64, now: UInt64) {
        let since = start - min(start, LeadUp.window)
        var own = LoopTurns(of: loop, since: since, now: now)
        own.turns.removeAll { $0.began >= start || $0.ended == nil }
        let others = loops.prefix(Self.maximumOthers + 1).filter { $0 !== loop }
        (self.since, self.loops) = (since, Array(others.prefix(Self.maximumOthers)))
        leadUp = LeadUp(
            start: start, own: own, others: self.loops.map { LoopTurns(of: $0, since: since, now: now) },
            omittedLoops: loops.count - (isAmong ? 1 : 0) - self.loops.count)
    }

    init(of loop: LoopMonitor, _ context: WatchdogContext, start: UInt64) {
        self.init(
            of: loop, among: context.loops, isAmong: context.isWatched(loop), start: start, now: context.now())
    }

    /// Adds what the other loops did since the last reading; one that is no longer watched keeps its turns.
    mutating func update(now: UInt64, isWatched: (LoopMonitor) -> Bool) {
        for (index, loop) in loops.enumerated() where isWatched(loop) {
            leadUp.others[index].add(LoopTurns(of: loop, since: since, now: now))
        }
    }
}

extension LoopTurns {
    /// Reads the turns of a loop that ended after `since`, in monotonic nanoseconds, or last.
    fileprivate init(of loop: LoopMonitor, since: UInt64, now: UInt64) {
        let turns = loop.recorder.turns(endedSince: since, now: now)
        self.init(
            label: loop.label, kind: loop.source.kind, turns: turns,
            isCut: turns.count { $0.ended != nil } == TurnHistory.capacity
        )
    }
}
