/// What the watched loops did in the seconds before a stall, and what the others did during it.
struct StallHistory: Sendable, Equatable {
    /// When the stalled turn began to count, in monotonic nanoseconds.
    let start: UInt64
    /// The turns of the stalled loop before the stall.
    private(set) var own: LoopTurns
    /// The turns of the other loops, in the order in which they were watched.
    private(set) var others: [LoopTurns]
    /// The same loops: several may have one label.
    private let loops: [Followed]
    let omittedLoops: Int

    private struct Followed: Equatable {
        let loop: LoopMonitor

        static func == (first: Self, second: Self) -> Bool { first.loop === second.loop }
    }

    /// The time before a stall that counts, in nanoseconds: 5 s.
    static let window: UInt64 = 5_000_000_000
    static let maximumOthers = 16

    /// Reads the turns of all loops at `now`, before and since a turn that counts from `start`: at most 6 KiB each.
    init(of loop: LoopMonitor, among loops: [LoopMonitor], start: UInt64, now: UInt64) {
        self.start = start
        let since = start - min(start, Self.window)
        own = LoopTurns(of: loop, since: since, now: now)
        own.turns.removeAll { $0.began >= start || $0.ended == nil }
        let others = loops.filter { $0 !== loop }
        self.loops = others.prefix(Self.maximumOthers).map(Followed.init)
        self.others = self.loops.map { LoopTurns(of: $0.loop, since: since, now: now) }
        omittedLoops = others.count - self.others.count
    }

    /// Adds what the other loops did since the last reading; one that is no longer watched keeps its turns.
    mutating func update(among watched: [LoopMonitor], now: UInt64) {
        let since = start - min(start, Self.window)
        for index in others.indices {
            let loop = loops[index].loop
            guard watched.contains(where: { $0 === loop }) else { continue }
            others[index].add(LoopTurns(of: loop, since: since, now: now))
        }
    }
}

struct LoopTurns: Sendable, Equatable {
    var label: String
    var kind: LoopKind
    /// The turns of a millisecond or more, oldest first; at most as many as a loop keeps, and those of earlier readings.
    var turns: [TurnHistory.Turn]
    /// Whether the loop had more such turns than it keeps.
    var isCut = false
}

extension LoopTurns {
    /// Reads the turns of a loop that ended after `since`, in monotonic nanoseconds, or last.
    init(of loop: LoopMonitor, since: UInt64, now: UInt64) {
        let turns = loop.recorder.turns(endedSince: since, now: now)
        self.init(
            label: loop.label, kind: loop.source.kind, turns: turns,
            isCut: turns.count { $0.ended != nil } == TurnHistory.capacity
        )
    }

    mutating func add(_ later: LoopTurns) {
        let first = later.turns.first?.began ?? .max
        // A turn that lasted has ended meanwhile: the later reading has its end, unless the loop has replaced it.
        turns = turns.filter { $0.began < first && $0.ended != nil } + later.turns
        isCut = isCut || later.isCut
    }
}
