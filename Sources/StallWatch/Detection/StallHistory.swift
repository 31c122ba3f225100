/// What the watched loops did in the seconds before a stall, and what the others did during it.
struct StallHistory: Sendable, Equatable {
    /// When the stalled turn began to count, in monotonic nanoseconds.
    let start: UInt64
    /// The turns of the stalled loop before the stall.
    private(set) var own: LoopTurns
    /// The turns of the other loops, in the order in which they were watched.
    private(set) var others: [LoopTurns]
    /// The number of further loops.
    let omittedLoops: Int

    /// The time before a stall that counts, in nanoseconds: 5 s.
    static let window: UInt64 = 5_000_000_000
    /// The largest number of other loops.
    static let maximumOthers = 16

    /// Reads the turns of all loops at the beginning of a stall.
    ///
    /// It copies at most 6 KiB for each loop, and takes no lock.
    ///
    /// - Parameters:
    ///   - loop: The stalled loop.
    ///   - loops: All watched loops.
    ///   - start: When the stalled turn began to count, in monotonic nanoseconds.
    ///   - now: The time.
    init(of loop: LoopMonitor, among loops: [LoopMonitor], start: UInt64, now: UInt64) {
        self.start = start
        let since = start - min(start, Self.window)
        own = LoopTurns(of: loop, since: since, now: now)
        own.turns.removeAll { $0.began >= start || $0.ended == nil }
        let others = loops.filter { $0 !== loop }
        self.others = others.prefix(Self.maximumOthers).map { LoopTurns(of: $0, since: since, now: now) }
        omittedLoops = others.count - self.others.count
    }

    /// Adds what the other loops did since the last reading.
    ///
    /// A loop that is no longer watched keeps its turns, and a new one is not added.
    mutating func update(among loops: [LoopMonitor], now: UInt64) {
        let since = start - min(start, Self.window)
        for index in others.indices {
            guard let loop = loops.first(where: { $0.label == others[index].label }) else { continue }
            others[index].add(LoopTurns(of: loop, since: since, now: now))
        }
    }
}
