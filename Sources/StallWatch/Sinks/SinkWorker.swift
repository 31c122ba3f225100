import StallReports
import LinuxSupport
import Synchronization

/// Runs one sink on a thread of its own, so that a slow one holds up neither the monitor nor the other sinks.
///
/// What a sink has not got to waits in a queue that is bounded; what a store could not write waits, bounded too, and is
/// tried again. Everything that is lost is counted.
final class SinkWorker: Sendable {
    /// Deliveries that wait for a slow sink; past it, the oldest is dropped.
    static let capacity = 64

    /// Reached when everything that was submitted before it has been given to the sink.
    final class Barrier: Sendable {
        private let reached = Atomic<Bool>(false)
        private let semaphore = Semaphore()

        var isReached: Bool { reached.load(ordering: .acquiring) }

        fileprivate func reach() {
            reached.store(true, ordering: .releasing)
            semaphore.post()
        }

        /// Waits until it is reached, or until `deadline` (monotonic nanoseconds).
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
    private let isDone = Atomic<Bool>(false)
    private let done = Semaphore()
    private let description: SinkDescription
    private let counts: ReportCounts
    /// Where failures are told, once each time that they begin.
    private let notice: @Sendable (Delivery) -> Void

    init(_ description: SinkDescription, counts: ReportCounts, notice: @escaping @Sendable (Delivery) -> Void) {
        self.description = description
        self.counts = counts
        self.notice = notice
    }

    /// Starts the thread.
    func start() throws(StallWatchError) {
        let thread = try throwing(.systemFailure) { () throws(SystemError) in
            try WorkerThread(name: description.name) { [self] in run() }
        }
        box.withLock { $0.thread = thread }
    }

    /// Whether the sink wants deliveries of that kind.
    func isInterested(in kind: Delivery.Interest) -> Bool { description.interest.contains(kind) }

    /// Leaves something for the sink, if it is interested.
    ///
    /// Never waits.
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

    /// A barrier behind everything that has been submitted.
    func barrier() -> Barrier {
        let barrier = Barrier()
        box.withLock { $0.items.append(.barrier(barrier)) }
        arrival.post()
        return barrier
    }

    /// Lets the thread end when the sink has got everything.
    func close() {
        box.withLock { $0.isClosed = true }
        arrival.post()
    }

    /// Tells that the calling thread is not to be waited for, if it is this sink's: it is what stops the monitor.
    func abandonIfCurrent() {
        box.withLock { box in
            if let thread = box.thread, thread.isCurrent { box.isAbandoned = true }
        }
    }

    /// Waits for the closed sink's thread until `deadline`; after that, the thread ends by itself when its sink lets
    /// it.
    func join(until deadline: UInt64) {
        // Taken away, so that a second call finds nothing: a thread is joined once.
        let (joining, isAbandoned) = box.withLock { box in
            defer { box.thread = nil }
            return (box.thread, box.isAbandoned)
        }
        guard let thread = joining else { return }
        if !isAbandoned {
            while !isDone.load(ordering: .acquiring), monotonicNow() < deadline { done.wait(until: deadline) }
        }
        if isDone.load(ordering: .acquiring) { thread.join() } else { thread.detach() }
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
            // When the monitor is stopped, what waits has one more chance.
            if isClosed && items.isEmpty || retries.isDue(at: monotonicNow()) { tryAgain(sink, &retries) }
            guard items.isEmpty else { continue }
            if isClosed { break }
            arrival.wait(until: retries.nextAttempt ?? .max)
        }
        if retries.waiting > 0 { counts.add { $0.reportsLost += retries.waiting } }
        sink.finish()
        isDone.store(true, ordering: .releasing)
        done.post()
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

    private func tryAgain(_ sink: any Sink, _ retries: inout Retries) {
        while let delivery = retries.first {
            do throws(StallWatchError) {
                try sink.take(delivery)
                retries.removeFirst()
                retries.succeeded()
            } catch {
                return failed(error, &retries)
            }
        }
    }

    private func failed(_ error: StallWatchError, _ retries: inout Retries) {
        counts.add { counts in
            counts.failedWrites += 1
            counts.lastWriteError = error
        }
        let isNews = !retries.isFailing
        if description.isStore { retries.failed(at: monotonicNow()) }
        if isNews { notice(.notice("a stall report was not written", ["reason": error.description])) }
    }
}

/// What a store could not write, and when to try again.
struct Retries {
    /// Reports that wait for a disk; past it, the oldest is dropped.
    static let capacity = 64

    private var deliveries: [Delivery] = []
    private var backoff = Backoff()

    var first: Delivery? { deliveries.first }
    var waiting: Int { deliveries.count }
    var isFailing: Bool { backoff.nextAttempt != nil }
    /// When to try again; `nil` while nothing waits.
    var nextAttempt: UInt64? { deliveries.isEmpty ? nil : backoff.nextAttempt ?? 0 }

    func isDue(at now: UInt64) -> Bool { nextAttempt.map { now >= $0 } ?? false }

    /// Whether a delivery may be tried now: not while the disk is left alone after a failure, nor before an older state
    /// of the same report.
    func mayTry(_ delivery: Delivery, at now: UInt64) -> Bool {
        backoff.mayTry(at: now) && !deliveries.contains { $0.id == delivery.id }
    }

    /// Keeps a delivery for later, in the place of an older state of the same report.
    ///
    /// Returns how many were dropped.
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

    mutating func removeFirst() { deliveries.removeFirst() }
    mutating func failed(at now: UInt64) { backoff.failed(at: now) }
    mutating func succeeded() { backoff.succeeded() }
}
