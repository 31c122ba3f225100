import LinuxSupport
import StallReports
import Synchronization

/// The sinks of a monitor: the stores, which write reports to disk, and the others, with every wait limited to
/// ``storeTimeLimit`` for stores and ``otherTimeLimit`` for others, whatever a sink does.
struct SinkSet: Sendable {
    /// The longest delay, in nanoseconds, that a store may cause to an abort or to ``StallMonitor/stop()``.
    static let storeTimeLimit: UInt64 = 5_000_000_000
    /// The same for all other sinks; also the longest delay that a store may cause to the delivery to other sinks.
    static let otherTimeLimit: UInt64 = 1_000_000_000
    /// How often a wait that a stop ends looks for one, in nanoseconds.
    private static let stopCheckInterval: UInt64 = 100_000_000

    private let stores: [SinkWorker]
    private let others: [SinkWorker]
    let unflushed: [String]?
    /// What every wait may take longer, in nanoseconds.
    private let patience: UInt64

    /// Creates the sinks' workers; starts no thread, and throws if a sink cannot work.
    init(_ sinks: [SinkFactory], counts: ReportCounts, notices: SinkEventRelay, extra: UInt64) throws(StallWatchError) {
        var stores: [SinkWorker] = []
        var others: [SinkWorker] = []
        var unflushed: [String] = []
        for sink in sinks {
            guard let description = try sink(counts, { notices.post(.init(.recovered, $0)) }) else { continue }
            if let refusal = description.unflushed { unflushed.append(refusal) }
            let worker = SinkWorker(description, counts: counts, notice: notices.post)
            if description.isStore { stores.append(worker) } else { others.append(worker) }
        }
        self.stores = stores
        self.others = others
        (self.unflushed, self.patience) = (stores.isEmpty ? nil : unflushed, extra)
    }

    private var all: [SinkWorker] { stores + others }

    func start() throws(StallWatchError) {
        for worker in all { try worker.start() }
    }

    func receive(_ event: Delivery.Event) -> Bool { all.contains { $0.receives(event) } }

    var intervalLength: UInt64? { all.compactMap(\.description.intervalLength).min() }

    /// Queues a delivery for all sinks; never waits.
    func submit(_ delivery: Delivery) {
        for worker in all { worker.submit(delivery) }
    }

    /// Delivers a stall's final report to stores first, so that other sinks find the file.
    ///
    /// Waits up to ``otherTimeLimit``, but not for a store still behind with `reached`, the last report's barriers, nor
    /// beyond `limit` (monotonic ns), which a stop may bring forward at any time, before it closes the sinks.
    func submitFinal(_ delivery: Delivery, reached: inout [SinkWorker.Barrier], limit: () -> UInt64) {
        for worker in stores { worker.submit(delivery) }
        if reached.allSatisfy(\.isReached) {
            reached = stores.map { $0.barrier() }
            let end = monotonicNow() &+ Self.otherTimeLimit &+ patience
            for barrier in reached {
                // The stop may begin meanwhile.
                while !barrier.isReached, monotonicNow() < min(end, limit()) {
                    barrier.wait(until: min(end, limit(), monotonicNow() &+ Self.stopCheckInterval))
                }
            }
        }
        for worker in others { worker.submit(delivery) }
    }

    func flush() {
        wait(for: stores.map { $0.barrier() }, Self.storeTimeLimit)
        wait(for: others.map { $0.barrier() }, Self.otherTimeLimit)
    }

    /// Returns why sinks could not take a report now, as far as that shows without one, and which do not answer until a
    /// deadline in monotonic nanoseconds.
    func faults(stores storeDeadline: UInt64, others otherDeadline: UInt64) -> [String] {
        let faults = Mailbox<String>()
        let barriers = all.map { worker in worker.checkReadiness { faults.put($0) } }
        for (index, barrier) in barriers.enumerated() {
            barrier.wait(until: (index < stores.count ? storeDeadline : otherDeadline) &+ patience)
        }
        for (worker, barrier) in zip(all, barriers) where !barrier.isReached {
            faults.put("an output does not answer (thread \(worker.description.name))")
        }
        faults.close()
        return Array(AnyIterator { faults.next() })
    }

    /// Call it when a sink stops the monitor: ``finish()`` then does not wait for the calling thread.
    func abandonCurrent() {
        for worker in all { worker.abandonIfCurrent() }
    }

    /// Ends all sinks, and waits for the stores until one moment and for the others until another, in monotonic
    /// nanoseconds; what a sink has not received by then is lost.
    func finish(stores storesEnd: UInt64, others othersEnd: UInt64) {
        for worker in all { worker.close() }
        for worker in stores { worker.join(until: storesEnd &+ patience) }
        for worker in others { worker.join(until: othersEnd &+ patience) }
    }

    private func wait(for barriers: [SinkWorker.Barrier], _ timeout: UInt64) {
        let deadline = monotonicNow() &+ timeout &+ patience
        for barrier in barriers { barrier.wait(until: deadline) }
    }
}

/// The counters of the reporter and the sinks, for any thread but a monitored one.
final class ReportCounts: Sendable {
    struct StallTotals: Sendable, Equatable {
        var count = 0
        var missed = 0
        var nanoseconds: UInt64 = 0
        /// When the last one was counted, in nanoseconds since 1970.
        var last: UInt64 = 0

        /// Returns what was counted since an earlier reading of the same totals; all without one.
        func since(_ earlier: Self?) -> Self {
            guard let earlier else { return self }
            return Self(
                count: count - earlier.count, missed: missed - earlier.missed,
                nanoseconds: nanoseconds &- earlier.nanoseconds, last: last)
        }
    }

    private let counts = Mutex((statistics: MonitorStatistics(), byLoop: [String: StallTotals]()))

    var current: MonitorStatistics { counts.withLock { $0.statistics } }

    var byLoop: [String: StallTotals] { counts.withLock { $0.byLoop } }

    func add(_ body: (inout MonitorStatistics) -> Void) {
        counts.withLock { body(&$0.statistics) }
    }

    /// Counts a stall, or `missed` turns of which one has this duration.
    func add(stallOf nanoseconds: UInt64, on loop: String?, missed: Int = 0) {
        counts.withLock { counts in
            counts.statistics.stalls += max(missed, 1)
            counts.statistics.missed += missed
            guard let loop else { return }
            var totals = counts.byLoop[loop] ?? StallTotals()
            totals.count += max(missed, 1)
            totals.missed += missed
            totals.nanoseconds &+= nanoseconds
            totals.last = wallClockNow()
            counts.byLoop[loop] = totals
        }
    }

    /// Forgets the totals of all loops but those with these labels.
    func keepLoops(_ labels: Set<String>) {
        counts.withLock { counts in counts.byLoop = counts.byLoop.filter { labels.contains($0.key) } }
    }

    func add(_ failure: StallWatchError) {
        add { statistics in
            statistics.failedWrites += 1
            statistics.lastWriteError = failure.description
        }
    }
}
