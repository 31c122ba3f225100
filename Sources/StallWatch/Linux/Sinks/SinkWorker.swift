import LinuxSupport
import StallReports
import Synchronization

/// Runs one sink on its own thread, so that a slow sink delays no other, with bounded queues of pending deliveries, and
/// of failed ones of a store, to be retried; counts those that are lost.
final class SinkWorker: Sendable {
    /// The maximum number of queued items; when it is exceeded, the oldest delivery is dropped.
    static let capacity = 64

    /// A marker in the queue, reached when the sink has received everything submitted before it.
    final class Barrier: Sendable {
        private let reached = Atomic<Bool>(false)
        private let semaphore = Semaphore()

        var isReached: Bool { reached.load(ordering: .acquiring) }

        fileprivate func reach() {
            reached.store(true, ordering: .releasing)
            semaphore.post()
        }

        /// Waits until the barrier is reached, or until `deadline` in monotonic nanoseconds.
        func wait(until deadline: UInt64) {
            while !isReached, monotonicNow() < deadline { semaphore.wait(until: deadline) }
        }
    }

    private enum Item: Sendable {
        case delivery(Delivery)
        case barrier(Barrier)
    }
    private struct Box {
        var items: [Item] = []
        var isClosed = false
        var isAbandoned = false
        var thread: WorkerThread?
    }
    private let box = Mutex(Box())
    private let arrival = Semaphore()
    let description: SinkDescription
    private let counts: ReportCounts
    private let notice: @Sendable (Delivery) -> Void

    init(_ description: SinkDescription, counts: ReportCounts, notice: @escaping @Sendable (Delivery) -> Void) {
        self.description = description
        self.counts = counts
        self.notice = notice
    }

    func start() throws(StallWatchError) {
        let thread = try throwing(.systemFailure) { () throws(SystemError) in
            try WorkerThread(name: description.name) { [self] in run() }
        }
        box.withLock { $0.thread = thread }
    }

    func isInterested(in kind: Delivery.Interest) -> Bool { description.interests.contains(kind) }

    /// Queues a delivery if the sink is interested in it; never waits.
    func submit(_ delivery: Delivery) {
        guard isInterested(in: delivery.interest) else { return }
        let isLost = box.withLock { box in
            guard !box.isClosed else { return delivery.id != nil }
            if description.isStore, let id = delivery.id {
                let waiting = box.items.lastIndex { if case .delivery(let old) = $0 { old.id == id } else { false } }
                if let waiting {
                    box.items[waiting] = .delivery(delivery)
                    return false
                }
            }
            box.items.append(.delivery(delivery))
            guard box.items.count > Self.capacity,
                let oldest = box.items.firstIndex(where: { if case .delivery = $0 { true } else { false } })
            else { return false }
            box.items.remove(at: oldest)
            return true
        }
        if isLost { counts.add { $0.reportsLost += 1 } }
        arrival.post()
    }

    /// Queues a barrier after everything submitted so far.
    func barrier() -> Barrier {
        let barrier = Barrier()
        box.withLock { $0.items.append(.barrier(barrier)) }
        arrival.post()
        return barrier
    }

    /// Makes the thread end once the sink has received everything.
    func close() {
        box.withLock { $0.isClosed = true }
        arrival.post()
    }

    /// If the calling thread is this sink's, makes ``join(until:)`` not wait for it, because it stops the monitor.
    func abandonIfCurrent() {
        box.withLock { if $0.thread?.isCurrent == true { $0.isAbandoned = true } }
    }

    /// Waits for the closed sink's thread until a deadline in monotonic nanoseconds, and detaches it if it misses that.
    func join(until deadline: UInt64) {
        // Remove the thread from the box, because a thread may be joined only once.
        let (joining, isAbandoned) = box.withLock { box in
            defer { box.thread = nil }
            return (box.thread, box.isAbandoned)
        }
        guard let thread = joining else { return }
        if isAbandoned { thread.detach() } else { thread.finish(until: deadline) }
    }
}

// MARK: - On the sink's thread

extension SinkWorker {
    private func run() {
        let sink = description.make()
        sink.start()
        var retries = Retries()
        while true {
            let (items, isClosed) = box.withLock { box in
                defer { box.items.removeAll() }
                return (box.items, box.isClosed)
            }
            for item in items {
                switch item {
                case .delivery(let delivery): give(delivery, to: sink, &retries)
                case .barrier(let barrier): barrier.reach()
                }
            }
            // When the monitor stops, retry failed deliveries once more.
            if isClosed && items.isEmpty || retries.isDue(at: monotonicNow()) { retryFailed(sink, &retries) }
            guard items.isEmpty else { continue }
            if isClosed { break }
            arrival.wait(until: retries.nextAttempt ?? .max)
        }
        let errors = sink.finish()
        errors.forEach(counts.add)
        let lost = retries.waiting + errors.count
        if lost > 0 { counts.add { $0.reportsLost += lost } }
    }

    private func give(_ delivery: Delivery, to sink: any Sink, _ retries: inout Retries) {
        guard retries.mayTry(delivery, at: monotonicNow()) else { return wait(delivery, &retries) }
        do throws(StallWatchError) {
            try sink.take(delivery)
            if description.isStore { retries.succeeded() }
        } catch {
            failed(error, &retries)
            if description.isStore { wait(delivery, &retries) }
        }
    }

    private func wait(_ delivery: Delivery, _ retries: inout Retries) {
        let lost = retries.keep(delivery)
        if lost > 0 { counts.add { $0.reportsLost += lost } }
    }

    private func retryFailed(_ sink: any Sink, _ retries: inout Retries) {
        var failure: StallWatchError?
        let end = monotonicNow() &+ SinkSet.otherTimeLimit
        // All of them: on a disk that is nearly full, one may fit where another one does not. Only one that hangs ends it.
        for delivery in retries.takeAll() {
            guard failure == nil || monotonicNow() < end else {
                wait(delivery, &retries)
                continue
            }
            do throws(StallWatchError) {
                try sink.take(delivery)
            } catch {
                failure = failure ?? error
                wait(delivery, &retries)
            }
        }
        if let failure { failed(failure, &retries) } else { retries.succeeded() }
    }

    private func failed(_ error: StallWatchError, _ retries: inout Retries) {
        counts.add(error)
        let isFirstFailure = !retries.isFailing
        if description.isStore { retries.failed(at: monotonicNow()) }
        if isFirstFailure { notice(.notice("a stall report could not be delivered", ["reason": error.description])) }
    }
}

/// The failed deliveries of a store, and the time of the next attempt: 1, 2, 4, 8, … seconds after a failure (a pure
/// value).
struct Retries {
    /// The maximum number of failed deliveries; when it is exceeded, the oldest is dropped.
    static let capacity = 64
    static let firstDelay: UInt64 = 1_000_000_000
    static let longestDelay: UInt64 = 300_000_000_000

    private var deliveries: [Delivery] = []
    private var delay = firstDelay
    /// The earliest time of an attempt after a failure, in monotonic nanoseconds; `nil` after a success.
    private(set) var earliest: UInt64?

    var waiting: Int { deliveries.count }
    var isFailing: Bool { earliest != nil }
    /// The time of the next attempt in monotonic nanoseconds; `nil` while nothing waits.
    var nextAttempt: UInt64? { deliveries.isEmpty ? nil : earliest ?? 0 }

    func isDue(at now: UInt64) -> Bool { nextAttempt.map { now >= $0 } ?? false }

    /// Returns whether a delivery may be attempted now: after the delay, and behind no older state of the same report.
    func mayTry(_ delivery: Delivery, at now: UInt64) -> Bool {
        earliest.map { now >= $0 } ?? true && !deliveries.contains { $0.id == delivery.id }
    }

    /// Queues a failed delivery in place of an older state of the same report; returns the number of dropped ones, 0 or 1.
    mutating func keep(_ delivery: Delivery) -> Int {
        if let older = deliveries.firstIndex(where: { $0.id == delivery.id }) {
            deliveries[older] = delivery
            return 0
        }
        deliveries.append(delivery)
        guard deliveries.count > Self.capacity else { return 0 }
        deliveries.removeFirst()
        return 1
    }

    mutating func takeAll() -> [Delivery] {
        defer { deliveries = [] }
        return deliveries
    }

    mutating func failed(at now: UInt64) {
        earliest = now &+ delay
        delay = min(delay * 2, Self.longestDelay)
    }

    mutating func succeeded() { (earliest, delay) = (nil, Self.firstDelay) }
}
