/// What the watched loops did in the seconds before a stall, and what the others did during it.
struct LeadUp: Sendable, Equatable {
    /// When the stalled turn began to count, in monotonic nanoseconds.
    let start: UInt64
    /// The turns of the stalled loop before the stall.
    var own: LoopTurns
    /// The turns of the other loops, in the order in which they were watched.
    var others: [LoopTurns]
    let omittedLoops: Int

    /// The time before a stall that counts, in nanoseconds: 5 s.
    static let window: UInt64 = 5_000_000_000
}

struct LoopTurns: Sendable, Equatable {
    var label: String
    var kind: LoopKind
    /// The turns of a millisecond or more, oldest first; at most as many as a loop keeps, and those of earlier readings.
    var turns: [TurnHistory.Turn]
    /// Whether the loop had more such turns than it keeps.
    var isCut = false

    mutating func add(_ later: LoopTurns) {
        let first = later.turns.first?.began ?? .max
        // A turn that lasted has ended meanwhile: the later reading has its end, unless the loop has replaced it.
        turns = turns.filter { $0.began < first && $0.ended != nil } + later.turns
        isCut = isCut || later.isCut
    }
}
