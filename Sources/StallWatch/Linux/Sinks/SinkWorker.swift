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
        case call(@Sendable (any Sink, Retries) -> Void)

        var delivery: Delivery? {
            if case .delivery(let delivery) = self { delivery } else { nil }
        }
    }
    private let queue = Mailbox<Item>()
    private let worker: Worker
    private let question = Mutex<Barrier?>(nil)
    /// The ids of the reports that the store has, or may have, as ongoing: each needs an end.
    private let open = Mutex<Set<String>>([])
    /// The ids of the reports that the sink's thread has taken and not delivered yet, without those counted as lost.
    private let held = Mutex<Set<String>>([])
    /// The ids of the reports that were counted as lost since ``close()``.
    private let lostAtEnd = Mutex<Set<String>>([])
    let description: SinkDescription
    private let counts: ReportCounts
    private let notice: @Sendable (Delivery) -> Void

    init(_ description: SinkDescription, counts: ReportCounts, notice: @escaping @Sendable (Delivery) -> Void) {
        self.description = description
        self.counts = counts
        self.notice = notice
        worker = Worker(name: description.name)
    }

    func start() throws(StallWatchError) {
        _ = try throwing(.systemFailure) { () throws(SystemError) in try worker.start { [self] in run() } }
    }

    func receives(_ event: Delivery.Event) -> Bool { description.events.contains(event) }

    /// Queues a delivery if the sink receives such ones; never waits.
    func submit(_ delivery: Delivery) {
        guard receives(delivery.event) else { return }
        let lost = queue.put(.delivery(delivery), limit: Self.capacity) { older in
            description.isStore && delivery.id != nil && older.delivery?.id == delivery.id
        } dropping: {
            $0.firstIndex { $0.delivery?.isCut == false }
        }
        if let end = lost?.delivery.flatMap(countLost) { queue.put(.delivery(end)) }
    }

    /// Counts the report of a delivery that is lost; returns the end of a stall that the store has as ongoing: of those
    /// there are at most as many as went on at one time, so they need no limit.
    private func countLost(_ lost: Delivery) -> Delivery? {
        // Without a report only a notice is lost.
        guard let id = lost.id else { return nil }
        if lost.isFinal {
            if queue.isClosed { countLostAtEnd([id]) } else { counts.add { $0.reportsLost += 1 } }
        }
        return open.withLock { $0.contains(id) } ? lost.cut : nil
    }

    /// Counts reports that are lost since ``close()``, each once.
    private func countLostAtEnd(_ ids: Set<String>) {
        let new = lostAtEnd.withLock { lost -> Int in
            let new = ids.subtracting(lost).count
            lost.formUnion(ids)
            return new
        }
        if new > 0 { counts.add { $0.reportsLost += new } }
    }

    func barrier() -> Barrier { barrier { _, _ in } }

    /// Queues a call with the sink, on its thread, and returns a barrier after it.
    private func barrier(_ call: @escaping @Sendable (any Sink, Retries) -> Void) -> Barrier {
        let barrier = Barrier()
        let item = Item.call { sink, retries in
            call(sink, retries)
            barrier.reach()
        }
        if queue.put(item) != nil { barrier.reach() }
        return barrier
    }

    /// Asks the sink why it could not take a report now, as far as that shows without one; of a sink that does not answer only
    /// one question waits.
    func checkReadiness(_ answer: @escaping @Sendable (String) -> Void) -> Barrier {
        question.withLock { question in
            if let question, !question.isReached { return question }
            let barrier = barrier { sink, retries in
                if retries.isFailing { answer("a report waits for a second attempt to deliver it") }
                do throws(StallWatchError) { try sink.checkReadiness() } catch { answer(error.description) }
            }
            question = barrier
            return barrier
        }
    }

    func close() { queue.close() }

    /// If the calling thread is this sink's, makes ``join(until:)`` not wait for it, because it stops the monitor.
    func abandonIfCurrent() { worker.abandonIfCurrent() }

    /// Waits for the thread's end until a deadline in monotonic nanoseconds; counts what it has not delivered by then.
    func join(until deadline: UInt64) {
        guard !worker.finish(until: deadline) else { return }
        // In this order: the thread holds a report only after it has taken it.
        let queued = queue.items.compactMap(\.delivery)
        let counted = queued.filter(\.isCut).compactMap(\.id)
        countLostAtEnd(held.withLock { $0 }.union(queued.compactMap(\.id)).subtracting(counted))
    }
}

// MARK: - On the sink's thread

extension SinkWorker {
    private func run() {
        let sink = description.make()
        sink.start()
        var retries = Retries()
        while true {
            switch queue.next(until: retries.nextAttempt ?? .max) {
            case .delivery(let delivery):
                hold(retries, delivery)
                give(delivery, to: sink, &retries)
            case .call(let call): call(sink, retries)
            case nil where queue.isDrained:
                // When the monitor stops, retry failed deliveries once more.
                retryFailed(sink, &retries)
                hold(retries)
                return finish(sink, retries)
            case nil: break
            }
            if retries.isDue(at: monotonicNow()) { retryFailed(sink, &retries) }
            hold(retries)
        }
    }

    /// Notes the reports that the thread has taken, before any of them is passed on.
    private func hold(_ retries: Retries, _ delivery: Delivery? = nil) {
        var ids = retries.waitingIDs
        if let delivery, let id = delivery.id {
            if !delivery.isCut { ids.insert(id) }
            if description.isStore, delivery.report?.state == .ongoing { open.withLock { _ = $0.insert(id) } }
        }
        held.withLock { $0 = ids }
    }

    private func finish(_ sink: any Sink, _ retries: Retries) {
        let errors = sink.finish()
        errors.forEach(counts.add)
        countLostAtEnd(retries.waitingIDs)
        if !errors.isEmpty { counts.add { $0.reportsLost += errors.count } }
    }

    private func give(_ delivery: Delivery, to sink: any Sink, _ retries: inout Retries) {
        guard retries.mayTry(delivery, at: monotonicNow()) else { return wait(delivery, &retries) }
        do throws(StallWatchError) {
            try pass(delivery, to: sink)
            if description.isStore { retries.succeeded() }
        } catch {
            failed(error, &retries)
            if description.isStore { wait(delivery, &retries) }
        }
    }

    private func pass(_ delivery: Delivery, to sink: any Sink) throws(StallWatchError) {
        try sink.receive(delivery)
        if let id = delivery.id, delivery.report?.state != .ongoing { open.withLock { _ = $0.remove(id) } }
    }

    private func wait(_ delivery: Delivery, _ retries: inout Retries) {
        if let end = retries.keep(delivery).flatMap(countLost) { _ = retries.keep(end) }
    }

    private func retryFailed(_ sink: any Sink, _ retries: inout Retries) {
        var failure: StallWatchError?
        let end = monotonicNow() &+ SinkSet.otherTimeLimit
        // All of them: on a disk that is nearly full, one may fit where another one does not. Only one that hangs ends it.
        for delivery in retries.removeAll() {
            guard failure == nil || monotonicNow() < end else {
                wait(delivery, &retries)
                continue
            }
            do throws(StallWatchError) {
                try pass(delivery, to: sink)
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
        if isFirstFailure {
            notice(.init(notice: "a stall report could not be delivered", ["reason": error.description]))
        }
    }
}

/// The failed deliveries of a store; the next attempt is 1, 2, 4, 8, … seconds after a failure (a pure value).
struct Retries {
    /// The maximum number of failed deliveries; when it is exceeded, the oldest is dropped.
    static let capacity = 64
    static let firstDelay: UInt64 = 1_000_000_000
    static let longestDelay: UInt64 = 300_000_000_000

    private var deliveries: [Delivery] = []
    private var delay = firstDelay
    /// The earliest time of an attempt after a failure, in monotonic nanoseconds; `nil` after a success.
    private(set) var earliest: UInt64?

    /// The ids of the reports that wait, without those that were counted as lost.
    var waitingIDs: Set<String> { Set(deliveries.filter { !$0.isCut }.compactMap(\.id)) }
    var waiting: Int { waitingIDs.count }
    var isFailing: Bool { earliest != nil }
    /// The time of the next attempt in monotonic nanoseconds; `nil` while nothing waits.
    var nextAttempt: UInt64? { deliveries.isEmpty ? nil : earliest ?? 0 }

    func isDue(at now: UInt64) -> Bool { nextAttempt.map { now >= $0 } ?? false }

    /// Returns whether a delivery may be attempted now: after the delay, and behind no older state of the same report.
    func mayTry(_ delivery: Delivery, at now: UInt64) -> Bool {
        earliest.map { now >= $0 } ?? true && !deliveries.contains { $0.id == delivery.id }
    }

    /// Queues a failed delivery in place of an older state of the same report; returns one that is dropped for it.
    mutating func keep(_ delivery: Delivery) -> Delivery? {
        if let older = deliveries.firstIndex(where: { $0.id == delivery.id }) {
            deliveries[older] = delivery
            return nil
        }
        deliveries.append(delivery)
        guard !delivery.isCut, deliveries.count > Self.capacity else { return nil }
        return deliveries.firstIndex { !$0.isCut }.map { deliveries.remove(at: $0) }
    }

    mutating func removeAll() -> [Delivery] {
        defer { deliveries = [] }
        return deliveries
    }

    mutating func failed(at now: UInt64) {
        earliest = now &+ delay
        delay = min(delay * 2, Self.longestDelay)
    }

    mutating func succeeded() { (earliest, delay) = (nil, Self.firstDelay) }
}
