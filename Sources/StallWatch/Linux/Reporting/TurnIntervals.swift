import Synchronization

/// Divides the turns of all loops into intervals, for sinks that receive statistics all the time; one ends at the
/// watchdog's first pass after its length, so that an idle process is not woken for it.
final class TurnIntervals: Sendable {
    private struct State {
        /// When the interval began, in monotonic nanoseconds; `nil` before the first.
        var began: UInt64?
        var before: [ObjectIdentifier: TurnHistogram.Snapshot] = [:]
        /// Keeps these loops, so that none that is new gets the identity of one of them.
        var loops: [LoopMonitor] = []
    }
    private let length: UInt64
    // A mutex for the compiler: only the watchdog uses it.
    private let state = Mutex(State())

    /// Makes intervals of at least that length, in nanoseconds.
    init(every length: UInt64) {
        self.length = length
    }

    /// Ends the interval if it has its length or is the last one; returns its loops, sorted by label, or none if it
    /// goes on.
    func pass(_ loops: [LoopMonitor], at now: UInt64, isLast: Bool = false) -> [LoopInterval] {
        state.withLock { state in
            if let began = state.began, !isLast, now &- began < length { return [] }
            let turns = Dictionary(
                loops.map { (ObjectIdentifier($0), $0.recorder.histogram.snapshot()) }, uniquingKeysWith: { $1 })
            defer { state = State(began: now, before: turns, loops: loops) }
            guard let began = state.began, now > began else { return [] }
            return Dictionary(grouping: loops, by: \.label).map { label, loops in
                LoopInterval(
                    label: label, nanoseconds: now - began,
                    loops.compactMap { loop in
                        let key = ObjectIdentifier(loop)
                        // A loop that is new counts from its first turn on.
                        return turns[key].map { (loop, $0.since(state.before[key])) }
                    })
            }
            .sorted { $0.label < $1.label }
        }
    }
}

extension LoopInterval {
    /// Adds up the loops with one label, and their turns in an interval of that length.
    init(label: String, nanoseconds: UInt64, _ loops: [(loop: LoopMonitor, turns: TurnHistogram.Snapshot)]) {
        let all = TurnHistogram.Snapshot(sumOf: loops.map(\.turns))
        let count = all.turns
        func bound(_ quantile: Double) -> Double { seconds(all.upperBound(quantile: quantile)) }
        self.init(
            label: label, turns: count,
            delay: count == 0
                ? nil
                : Delay(
                    mean: seconds(all.busyNanoseconds / count), p50: bound(0.5), p90: bound(0.9), p99: bound(0.99),
                    longest: bound(1)),
            utilization: loops.filter(\.loop.source.kind.reportsTurns)
                .map { min(Double($0.turns.busyNanoseconds) / Double(nanoseconds), 1) }.max(),
            threshold: seconds(loops.map(\.loop.threshold).max() ?? 0)
        )
    }
}
