import StallReports
import LinuxSupport
import Synchronization

/// The failed deliveries of a store, and the time of the next attempt.
struct Retries {
    /// The maximum number of failed deliveries; when it is exceeded, the oldest is dropped.
    static let capacity = 64

    private var deliveries: [Delivery] = []
    private var backoff = Backoff()

    var first: Delivery? { deliveries.first }
    var waiting: Int { deliveries.count }
    var isFailing: Bool { backoff.nextAttempt != nil }
    /// The time of the next attempt in monotonic nanoseconds; `nil` while nothing waits.
    var nextAttempt: UInt64? { deliveries.isEmpty ? nil : backoff.nextAttempt ?? 0 }

    func isDue(at now: UInt64) -> Bool { nextAttempt.map { now >= $0 } ?? false }

    /// Returns whether a delivery may be attempted now.
    ///
    /// It must wait for the delay after a failure, and behind an older state of the same report.
    func mayTry(_ delivery: Delivery, at now: UInt64) -> Bool {
        backoff.mayTry(at: now) && !deliveries.contains { $0.id == delivery.id }
    }

    /// Queues a failed delivery; it replaces an older state of the same report.
    ///
    /// - Parameter delivery: The delivery.
    /// - Returns: The number of dropped deliveries, 0 or 1.
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
