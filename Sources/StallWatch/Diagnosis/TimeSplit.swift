/// Where a turn's time went, in nanoseconds.
///
/// The three parts add up to the duration.
struct TimeSplit: Equatable, Sendable {
    /// On a CPU.
    var onCPU: UInt64
    /// Ready to run, without a CPU.
    var runQueue: UInt64
    /// Waiting for something: all the rest.
    var blocked: UInt64
    /// How much of the first two may belong to the time right before or after the turn: each is right within this.
    var uncertainty: UInt64

    var duration: UInt64 { onCPU + runQueue + blocked }
}

extension TimeSplit {
    /// Splits the time from `start` to `end` of one turn.
    ///
    /// Nothing is read when a turn begins: that would cost every turn a system call. The time between the first reading
    /// inside the turn and the last one is known exactly. Of what lies before, the two readings around the turn's
    /// beginning tell the sum. What the loop did outside of the turn, it did while it did not wait for events; it is taken
    /// off by the rate that the readings before show. The bounds are that all of that time was spent, or none. The
    /// watchdog wakes up when a loop begins to turn after a pause, and looks at a busy one once per threshold: so the
    /// unknown part is some 100 us for a loop that was idle, and up to one threshold for one that never waits.
    ///
    /// - Parameters:
    ///   - readings: Ascending by time. Used are the last two before `start`, the first after `end` and those between.
    ///   - start: When the turn began, in monotonic nanoseconds.
    ///   - end: When it ended, or the time up to which it is looked at.
    init?(readings: [ThreadReading], from start: UInt64, to end: UInt64) {
        let inside = readings.filter { $0.time >= start && $0.time <= end }
        let earlier = Array(readings.filter { $0.time < start }.suffix(2))
        let after = readings.first { $0.time > end }
        guard end >= start, !earlier.isEmpty || after != nil || !inside.isEmpty else { return nil }
        let duration = end - start
        let before = earlier.last
        let head = (inside.first?.time ?? end) - start
        let next = inside.first ?? after

        func amount(_ value: KeyPath<ThreadReading, UInt64>, known: UInt64) -> Amount {
            let rate = earlier.count == 2 ? Amount.rate(value, earlier[0], earlier[1]) : 0
            var sum = Amount(known)
            if before == nil, let next, value == \.onCPU {
                sum.add(Amount(onCPUBefore: next, inside: head))
            } else {
                sum.add(Amount(value, before, next, inside: head, rateOutside: rate))
            }
            // Behind its turn the loop waits.
            if let last = inside.last { sum.add(Amount(value, last, after, inside: end - last.time, rateOutside: 0)) }
            return sum
        }
        let (cpu, queue) = Self.known(inside)
        let onCPU = amount(\.onCPU, known: cpu)
        let runQueue = amount(\.runQueue, known: queue)
        self.onCPU = min(onCPU.estimate, duration)
        self.runQueue = min(runQueue.estimate, duration - self.onCPU)
        blocked = duration - self.onCPU - self.runQueue
        uncertainty = min(onCPU.uncertainty, duration)
    }

    /// What is known of the time between the first and the last of the readings of one turn.
    private static func known(_ readings: [ThreadReading]) -> (onCPU: UInt64, runQueue: UInt64) {
        var sum: (onCPU: UInt64, runQueue: UInt64) = (0, 0)
        // Counted before schedstat tells of it.
        var ahead: UInt64 = 0
        for (from, to) in zip(readings, readings.dropFirst()) {
            let span = to.time - from.time
            let onCPU = min(to.onCPU - min(from.onCPU, to.onCPU), span)
            let told = to.runQueue - min(from.runQueue, to.runQueue)
            let isReady = from.isRunnable && to.isRunnable && from.voluntarySwitches == to.voluntarySwitches
            // Who never waited was ready for all of the rest: also for a wait for a CPU that schedstat does not show
            // while it lasts, and for one that it never shows, because the host of this machine had taken the CPU.
            let runQueue = isReady ? span - onCPU : min(told - min(ahead, told), span - onCPU)
            ahead = isReady ? runQueue - min(told, runQueue) : 0
            sum = (sum.onCPU + onCPU, sum.runQueue + runQueue)
        }
        return sum
    }

    /// An amount of time, and by how much it may be wrong.
    private struct Amount {
        var estimate: UInt64
        var uncertainty: UInt64 = 0

        init(_ exact: UInt64) { estimate = exact }

        /// How much of its CPU time a thread had in the `inside` nanoseconds before the first reading of all.
        ///
        /// Who is ready then is taken to have been on a CPU, and who waits to have waited.
        init(onCPUBefore first: ThreadReading, inside: UInt64) {
            let most = min(first.onCPU, inside)
            (estimate, uncertainty) = (first.isRunnable ? most : 0, most)
        }

        /// How much of what passed between two readings falls into a stretch of `inside` nanoseconds at one of the two.
        ///
        /// Without one of the readings, nothing is known.
        init(
            _ value: KeyPath<ThreadReading, UInt64>, _ from: ThreadReading?, _ to: ThreadReading?, inside: UInt64,
            rateOutside: Double
        ) {
            guard let from, let to, to.time > from.time else {
                (estimate, uncertainty) = (0, inside)
                return
            }
            let amount = to[keyPath: value] - min(from[keyPath: value], to[keyPath: value])
            let busy = Self.busy(from, to)
            let outside = busy - min(inside, busy)
            let least = min(amount - min(outside, amount), inside)
            let most = max(min(amount, inside), least)
            let spentOutside = min(UInt64(rateOutside * Double(outside)), amount)
            estimate = min(max(amount - spentOutside, least), most)
            uncertainty = max(estimate - least, most - estimate)
        }

        /// The time between two readings in which the loop did not wait for events.
        private static func busy(_ from: ThreadReading, _ to: ThreadReading) -> UInt64 {
            let (time, waited) = (to.time - from.time, to.loopWaited - min(from.loopWaited, to.loopWaited))
            return time - min(waited, time)
        }

        /// The share of the time between two readings, as far as the loop did not wait, 0 to 1.
        static func rate(_ value: KeyPath<ThreadReading, UInt64>, _ from: ThreadReading, _ to: ThreadReading) -> Double
        {
            guard to.time > from.time, to[keyPath: value] > from[keyPath: value] else { return 0 }
            return min(Double(to[keyPath: value] - from[keyPath: value]) / Double(max(busy(from, to), 1)), 1)
        }

        mutating func add(_ other: Amount) {
            estimate += other.estimate
            uncertainty += other.uncertainty
        }
    }
}
