import StallReports

extension StallReport.History {
    /// The largest number of turns of each loop that did not stall.
    static let maximumOtherTurns = 32

    /// Describes what the loops did around a stall.
    ///
    /// - Parameters:
    ///   - history: The turns of all loops.
    ///   - duration: The duration of the stall so far, in nanoseconds.
    init(_ history: StallHistory, duration: UInt64) {
        let now = history.start &+ duration
        let own = StallReport.LoopHistory(history.own, limit: TurnHistory.capacity, start: history.start, now: now)
        let others = history.others.map {
            StallReport.LoopHistory($0, limit: Self.maximumOtherTurns, start: history.start, now: now)
        }
        self.init(
            windowMilliseconds: milliseconds(StallHistory.window), loops: [own] + others,
            omittedLoops: history.omittedLoops == 0 ? nil : history.omittedLoops
        )
    }
}

extension StallReport.LoopHistory {
    fileprivate init(_ loop: LoopTurns, limit: Int, start: UInt64, now: UInt64) {
        // A turn that began after the stall had ended tells nothing about it.
        let turns = loop.turns.filter { $0.began <= now }
        self.init(
            label: loop.label, kind: .init(rawValue: loop.kind.rawValue),
            turns: turns.suffix(limit).map { StallReport.Turn($0, start: start, now: now) },
            omitsOlderTurns: loop.isCut || turns.count > limit ? true : nil
        )
    }
}

extension StallReport.Turn {
    fileprivate init(_ turn: TurnHistory.Turn, start: UInt64, now: UInt64) {
        let isBefore = turn.began < start
        let distance = milliseconds(isBefore ? start - turn.began : turn.began - start)
        let end = turn.ended ?? max(now, turn.began)
        self.init(
            atMilliseconds: isBefore ? -distance : distance,
            durationMilliseconds: milliseconds(end - min(turn.began, end)),
            waitedMilliseconds: milliseconds(turn.waited), isOngoing: turn.ended == nil ? true : nil
        )
    }
}
