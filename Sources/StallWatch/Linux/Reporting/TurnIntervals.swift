import StallReports
import Synchronization

/// Divides the turns of all loops into intervals, for sinks that receive statistics all the time; one ends at the
/// watchdog's first pass after its length, so that an idle process is not woken for it.
final class TurnIntervals: Sendable {
    private struct LastPass {
        /// When the interval began, in monotonic nanoseconds; `nil` before the first.
        var began: UInt64?
        var before: [ObjectIdentifier: BusyTurns] = [:]
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
                loops.map { (ObjectIdentifier($0), BusyTurns(of: $0, at: now)) }, uniquingKeysWith: { $1 })
            defer { last = LastPass(began: now, before: turns, loops: loops) }
            guard let began = last.began, now > began else { return [] }
            return Dictionary(grouping: loops, by: \.label).map { label, loops -> LoopStatistics in
                // One that is new has only been watched for a part of the interval.
                let since = max(began, loops.map(\.watchedFrom).min() ?? began)
                return LoopStatistics(
                    label: label, nanoseconds: now - min(since, now),
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

/// What the turns of a loop have taken by a moment, or in an interval.
struct BusyTurns {
    var past: TurnHistogram.Snapshot
    /// The time of the turn in progress, in nanoseconds; `nil` while the loop waits, and in an interval.
    var current: UInt64?
    /// The time in turns, with the one in progress, in nanoseconds.
    var busy: UInt64

    /// Reads the turns of a loop at a moment; without one, the turns that are over.
    init(of loop: LoopMonitor, at now: UInt64?) {
        // In this order: a turn that ends meanwhile is not counted twice.
        past = loop.recorder.histogram.snapshot()
        current = now.flatMap { loop.turnDuration(at: $0) }
        busy = past.busyNanoseconds &+ (current ?? 0)
    }

    /// Returns the turns since an earlier reading of the same loop; all of them without one.
    func since(_ earlier: Self?) -> Self {
        var turns = self
        turns.past = past.since(earlier?.past)
        turns.current = nil
        // A turn that turns out to be a wait was counted while it lasted.
        turns.busy = busy - min(earlier?.busy ?? 0, busy)
        return turns
    }
}

extension LoopStatistics {
    /// Adds up the loops with one label and their turns in that many nanoseconds.
    init(label: String, nanoseconds: UInt64, _ loops: [(loop: LoopMonitor, turns: BusyTurns)]) {
        self.init(label: label)
        let all = TurnHistogram.Snapshot(sumOf: loops.map(\.turns.past))
        watchedTime = .nanoseconds(nanoseconds)
        turns = all.turns
        busyTime = .nanoseconds(all.busyNanoseconds)
        currentTurn = loops.compactMap(\.turns.current).max().map { .nanoseconds($0) }
        threshold = .nanoseconds(loops.map(\.loop.threshold).max() ?? 0)
        let own = loops.filter { $0.loop.source.kind.reportsTurns }.map(\.turns)
        // A main run loop that never runs says nothing of the main queue, which has heartbeats.
        if turns == 0 || own.contains(where: { $0.busy > 0 || $0.past.turns > 0 }) {
            utilization = own.map { min(Double($0.busy) / Double(max(nanoseconds, 1)), 1) }.max()
        }
        latency = all.counts.enumerated().filter { $0.element > 0 }.map { bucket, turns in
            LatencyBucket(upperBound: TurnHistogram.upperBound(of: bucket).map { .nanoseconds($0) }, turns: turns)
        }
    }
}
