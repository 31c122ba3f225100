/// The turns of one loop around a stall.
struct LoopTurns: Sendable, Equatable {
    /// The loop's name in reports.
    var label: String
    var kind: LoopKind
    /// The turns of a millisecond or more, oldest first; at most as many as a loop keeps, and those of earlier readings.
    var turns: [TurnHistory.Turn]
    /// Whether the loop had more such turns than it keeps.
    var isCut = false

    /// Reads the turns of a loop since a moment.
    ///
    /// - Parameters:
    ///   - loop: The loop.
    ///   - since: The earliest end of a turn, in monotonic nanoseconds.
    ///   - now: The time.
    init(of loop: LoopMonitor, since: UInt64, now: UInt64) {
        let turns = loop.recorder.turns(endedSince: since, now: now)
        self.init(
            label: loop.label, kind: loop.source.kind, turns: turns,
            isCut: turns.count { $0.ended != nil } == TurnHistory.capacity
        )
    }

    init(label: String, kind: LoopKind, turns: [TurnHistory.Turn], isCut: Bool = false) {
        self.label = label
        self.kind = kind
        self.turns = turns
        self.isCut = isCut
    }

    /// Adds a later reading of the same loop.
    mutating func add(_ later: LoopTurns) {
        let first = later.turns.first?.began ?? .max
        // A turn that lasted has ended meanwhile: the later reading has its end, unless the loop has replaced it.
        turns = turns.filter { $0.began < first && $0.ended != nil } + later.turns
        isCut = isCut || later.isCut
    }
}
