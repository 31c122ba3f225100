import StackCapture

/// The split of a turn's duration into three parts, in nanoseconds, which add up to the duration.
struct TimeSplit: Equatable, Sendable {
    var onCPU: UInt64
    /// The time runnable without a CPU.
    var runQueue: UInt64
    var blocked: UInt64
    /// The maximum error of ``onCPU`` and ``runQueue``: some may belong to the time right before or after the turn.
    var uncertainty: UInt64

    var duration: UInt64 { onCPU + runQueue + blocked }
}

extension TimeSplit {
    /// Splits the time from `start` to `end` of one turn, or to the last reading of an ongoing one.
    ///
    /// No reading is taken when a turn begins: it would cost every turn a system call. Between the first and the last
    /// reading inside the turn the time is exact. For the time before, the readings around the turn's start give only a
    /// sum, from which work of earlier turns is subtracted, as estimated from the loop's busy time outside and its rate
    /// before; the bounds assume that it took all or none of that time. So the uncertainty is some 100 us for a loop
    /// that was idle, and up to one threshold for a loop that never waits. Of the readings, ascending by time, the last
    /// two before `start`, all within the turn and the first after `end` are used.
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
            if before == nil, let next {
                sum.add(Amount(value, before: next, inside: head))
            } else {
                sum.add(Amount(value, before, next, inside: head, rateOutside: rate))
            }
            // After its turn the loop waits, so the rate outside is 0.
            if let last = inside.last { sum.add(Amount(value, last, after, inside: end - last.time, rateOutside: 0)) }
            return sum
        }
        let (cpu, queue, unseen) = Self.known(inside)
        let onCPU = amount(\.onCPU, known: cpu)
        let runQueue = amount(\.runQueue, known: queue)
        self.onCPU = min(onCPU.estimate, duration)
        self.runQueue = min(runQueue.estimate, duration - self.onCPU)
        blocked = duration - self.onCPU - self.runQueue
        uncertainty = min(max(onCPU.uncertainty, runQueue.uncertainty) + unseen, duration)
    }

    /// Returns the CPU and run-queue time between the first and the last reading within a turn, and how much of the rest may
    /// be run-queue time that the kernel does not count.
    private static func known(_ readings: [ThreadReading]) -> (onCPU: UInt64, runQueue: UInt64, unseen: UInt64) {
        var sum: (onCPU: UInt64, runQueue: UInt64, unseen: UInt64) = (0, 0, 0)
        // Run-queue time that is counted here before schedstat shows it.
        var ahead: UInt64 = 0
        for (from, to) in zip(readings, readings.dropFirst()) {
            let span = to.time - from.time
            let onCPU = min(to.onCPU - min(from.onCPU, to.onCPU), span)
            let counted = to.runQueue - min(from.runQueue, to.runQueue)
            let hasNotWaited = from.voluntarySwitches != nil && from.voluntarySwitches == to.voluntarySwitches
            let isReady = from.isRunnable && to.isRunnable && hasNotWaited
            let isBlocked = !from.isRunnable && !to.isRunnable && hasNotWaited
            // A thread that was runnable throughout spent the rest without a CPU. schedstat shows such a wait only when
            // it ends, and never shows one that is caused by CPU steal.
            let runQueue = isReady ? span - onCPU : min(counted - min(ahead, counted), span - onCPU)
            ahead = isReady ? runQueue - min(counted, runQueue) : 0
            let unseen = to.showsRunQueue || isReady || isBlocked ? 0 : span - onCPU
            sum = (sum.onCPU + onCPU, sum.runQueue + runQueue, sum.unseen + unseen)
        }
        return sum
    }

    private struct Amount {
        var estimate: UInt64
        var uncertainty: UInt64 = 0

        init(_ exact: UInt64) { estimate = exact }

        /// Estimates how much of a value falls into the `inside` nanoseconds before a first reading: CPU time as if the
        /// reading's state had lasted.
        init(_ value: KeyPath<ThreadReading, UInt64>, before first: ThreadReading, inside: UInt64) {
            let most = min(first[keyPath: value], inside)
            (estimate, uncertainty) = (value == \.onCPU && first.isRunnable ? most : 0, most)
        }

        /// Estimates how much of a value's growth between two readings falls into the `inside` nanoseconds within the
        /// turn, from `rateOutside`, the growth per busy nanosecond outside the turn, 0 to 1.
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

        private static func busy(_ from: ThreadReading, _ to: ThreadReading) -> UInt64 {
            let (time, waited) = (to.time - from.time, to.loopWaited - min(from.loopWaited, to.loopWaited))
            return time - min(waited, time)
        }

        /// Returns a value's growth per busy nanosecond between two readings, 0 to 1.
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
