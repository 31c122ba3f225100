import StallReports
import LinuxSupport

/// The sinks of a monitor: the stores, which keep reports on a disk, and the others.
///
/// Nothing here waits longer than one of the patiences, whatever a sink does.
struct SinkSet: Sendable {
    /// How long a disk may keep the process from aborting, or ``StallMonitor/stop()`` from returning, in nanoseconds.
    static let storePatience: UInt64 = 5_000_000_000
    /// The same for any other sink; also how long a disk may keep a report from the other sinks.
    static let otherPatience: UInt64 = 1_000_000_000

    private let stores: [SinkWorker]
    private let others: [SinkWorker]

    /// - Throws: What a sink says that cannot work.
    init(_ sinks: [SinkFactory], counts: ReportCounts, notices: SinkEventRelay) throws(StallWatchError) {
        var stores: [SinkWorker] = []
        var others: [SinkWorker] = []
        for sink in sinks {
            let description = try sink(counts) { notices.post(.recovered($0)) }
            let worker = SinkWorker(description, counts: counts, notice: notices.post)
            if description.isStore { stores.append(worker) } else { others.append(worker) }
        }
        self.stores = stores
        self.others = others
    }

    private var all: [SinkWorker] { stores + others }

    /// Starts the sinks' threads.
    func start() throws(StallWatchError) {
        for worker in all { try worker.start() }
    }

    /// Whether any of them wants to have deliveries of this kind.
    func areInterested(in kind: Delivery.Interest) -> Bool { all.contains { $0.isInterested(in: kind) } }

    /// Gives it to all.
    func submit(_ delivery: Delivery) {
        for worker in all { worker.submit(delivery) }
    }

    /// Gives the last report of a stall to the stores, and to the others once it is on disk: who is told of a report
    /// finds its file.
    ///
    /// - Parameter reached: Where each store was when the last stall was over. A disk that takes too long is not waited for,
    ///   and not again before it has caught up.
    func submitFinal(_ delivery: Delivery, reached: inout [SinkWorker.Barrier]) {
        for worker in stores { worker.submit(delivery) }
        if reached.allSatisfy(\.isReached) {
            reached = stores.map { $0.barrier() }
            wait(for: reached, Self.otherPatience)
        }
        for worker in others { worker.submit(delivery) }
    }

    /// Waits until the sinks have got everything so far.
    func flush() {
        wait(for: stores.map { $0.barrier() }, Self.storePatience)
        wait(for: others.map { $0.barrier() }, Self.otherPatience)
    }

    /// Tells that the calling thread is not to be waited for, if it is a sink's: it is what stops the monitor.
    func abandonCurrent() {
        for worker in all { worker.abandonIfCurrent() }
    }

    /// Waits until the sinks have got everything there will ever be.
    ///
    /// Harmless the second time.
    func finish() {
        for worker in all { worker.close() }
        for worker in stores { worker.join(until: monotonicNow() &+ Self.storePatience) }
        let deadline = monotonicNow() &+ Self.otherPatience
        for worker in others { worker.join(until: deadline) }
    }

    private func wait(for barriers: [SinkWorker.Barrier], _ timeout: UInt64) {
        let deadline = monotonicNow() &+ timeout
        for barrier in barriers { barrier.wait(until: deadline) }
    }
}
