import LinuxSupport

/// Finds out that a loop without observers waits for work, so that it needs no heartbeat.
///
/// Only the watchdog calls it.
protocol IdleCheck: AnyObject, Sendable {
    /// Returns whether the loop has no work now; `false` if that is not certain.
    ///
    /// - Parameters:
    ///   - thread: The thread that ran the loop's last item; `nil` if that is unknown.
    ///   - lastDelay: How long that item took to run, in nanoseconds.
    ///   - isQuiet: Returns whether no thread of the process can do anything before an event wakes the watchdog.
    /// - Returns: Whether it has no work.
    func isIdle(thread: Int32?, lastDelay: UInt64, isQuiet: () -> Bool) -> Bool

    /// Whether the loop still has no work, as far as the loop itself shows it.
    var isStillIdle: Bool { get }

    /// Notes that an item is about to be sent to the loop.
    func noteSent(to thread: Int32?)

    /// The way in which the loop rests now that it is idle; `nil` if it cannot rest.
    var rest: LoopRest? { get }
}

/// A serial dispatch queue, whose state says whether it is idle.
final class QueueIdleCheck: IdleCheck {
    private let queue: QueueOwner

    init(_ queue: QueueOwner) {
        self.queue = queue
        DispatchWorkers.follow()
    }

    func isIdle(thread: Int32?, lastDelay: UInt64, isQuiet: () -> Bool) -> Bool { queue.isIdle }

    var isStillIdle: Bool { queue.isIdle }

    func noteSent(to thread: Int32?) {}

    var rest: LoopRest? { .dispatch }
}

/// A pool of threads, which is idle if no thread of the process does anything.
final class PoolIdleCheck: IdleCheck {
    init() { DispatchWorkers.follow() }

    func isIdle(thread: Int32?, lastDelay: UInt64, isQuiet: () -> Bool) -> Bool { isQuiet() }

    var isStillIdle: Bool { true }

    func noteSent(to thread: Int32?) {}

    var rest: LoopRest? { .dispatch }
}
