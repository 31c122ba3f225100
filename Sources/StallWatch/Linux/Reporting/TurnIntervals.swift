import StallReports
import Synchronization

/// Divides the turns of all loops into intervals, for sinks that receive statistics all the time; one ends at the
/// watchdog's first pass after its length, so that an idle process is not woken for it.
final class TurnIntervals: Sendable {
    private struct LastPass {
        /// When the interval began, in monotonic nanoseconds; `nil` before the first.
        var began: UInt64?
        var before: [ObjectIdentifier: TurnHistogram.Snapshot] = [:]
        /// Keeps these loops, so that none that is new gets the identity of one of them.
        var loops: [LoopMonitor] = []
    }
    private let length: UInt64
    // A mutex for the compiler: only the watchdog uses it.
    private let last = Mutex(LastPass())

    /// Makes intervals of at least that length, in nanoseconds.
    init(every length: UInt64) {
        self.length = length
    }

    /// Ends the interval if it has its length or is the last one; returns its loops, sorted by label, if it ended.
    func pass(_ loops: [LoopMonitor], at now: UInt64, isLast: Bool = false) -> [LoopStatistics] {
        self.last.withLock { last in
            if let began = last.began, !isLast, now &- began < length { return [] }
            let turns = Dictionary(
                loops.map { (ObjectIdentifier($0), $0.recorder.histogram.snapshot()) }, uniquingKeysWith: { $1 })
            defer { last = LastPass(began: now, before: turns, loops: loops) }
            guard let began = last.began, now > began else { return [] }
            return Dictionary(grouping: loops, by: \.label).map { label, loops in
                LoopStatistics(
                    label: label, nanoseconds: now - began,
                    loops.compactMap { loop in
                        let key = ObjectIdentifier(loop)
                        // A loop that is new counts from its first turn on.
                        return turns[key].map { (loop, $0.since(last.before[key])) }
                    })
            }
            .sorted { $0.label < $1.label }
        }
    }
}

extension LoopStatistics {
    /// Adds up the loops with one label and their turns in that many nanoseconds, with those in progress at `now`.
    init(
        label: String, nanoseconds: UInt64, _ loops: [(loop: LoopMonitor, turns: TurnHistogram.Snapshot)],
        at now: UInt64? = nil
    ) {
        self.init(label: label)
        let all = TurnHistogram.Snapshot(sumOf: loops.map(\.turns))
        let current = loops.map { loop in now.flatMap { loop.loop.turnDuration(at: $0) } }
        watchedTime = .nanoseconds(nanoseconds)
        turns = all.turns
        busyTime = .nanoseconds(all.busyNanoseconds)
        currentTurn = current.compactMap(\.self).max().map { .nanoseconds($0) }
        threshold = .nanoseconds(loops.map(\.loop.threshold).max() ?? 0)
        utilization = zip(loops, current).compactMap { loop, current in
            guard loop.loop.source.kind.reportsTurns else { return nil }
            return min(Double(loop.turns.busyNanoseconds &+ (current ?? 0)) / Double(max(nanoseconds, 1)), 1)
        }.max()
        latency = all.counts.enumerated().filter { $0.element > 0 }.map { bucket, turns in
            LatencyBucket(upperBound: TurnHistogram.upperBound(of: bucket).map { .nanoseconds($0) }, turns: turns)
        }
    }
}
