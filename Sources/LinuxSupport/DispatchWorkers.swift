internal import CLinux

/// The worker threads of libdispatch, which run all of its queues except a main queue that a run loop serves.
package enum DispatchWorkers {
    /// A worker thread.
    package struct Worker: Sendable, Equatable {
        /// The thread's kernel id.
        package var thread: Int32
        /// Whether it has left its idle wait: it runs items, or is about to take one.
        package var isInDrain: Bool
        /// Whether its drain takes one of a limited number of threads, as all but those of serial queues do.
        package var isInPool: Bool

        package init(thread: Int32, isInDrain: Bool, isInPool: Bool) {
            self.thread = thread
            self.isInDrain = isInDrain
            self.isInPool = isInPool
        }
    }

    /// The most workers that a reading has; as many as are followed.
    private static let maximum = 512

    /// Follows all workers from their next drain on, for the rest of the process.
    ///
    /// - Returns: Whether they can be followed here.
    @discardableResult
    package static func follow() -> Bool { clinux_follow_dispatch_workers() }

    /// Whether every worker that has begun a drain since ``follow()`` is followed.
    package static var areFollowed: Bool { clinux_follows_dispatch_workers() }

    /// Whether the calling thread is a followed worker in a drain.
    package static var isCurrentInDrain: Bool { clinux_is_in_drain() }

    /// The followed workers now.
    package static var all: [Worker] {
        [clinux_worker](unsafeUninitializedCapacity: maximum) { buffer, count in
            // The capacity is not 0, so the buffer has an address.
            count = buffer.baseAddress.map { clinux_dispatch_workers($0, maximum) } ?? 0
        }
        .map { Worker(thread: $0.thread, isInDrain: $0.is_in_drain, isInPool: $0.is_in_pool) }
    }
}

/// Calls a closure whenever a worker of libdispatch begins a drain, on that worker.
package final class DrainNotice: Sendable {
    private final class Body: Sendable {
        let call: @Sendable () -> Void
        init(_ call: @escaping @Sendable () -> Void) { self.call = call }
    }
    /// The closure, which the C code refers to until `deinit`.
    private let body: Body

    /// Begins the calls.
    ///
    /// Fails if there are 16 notices already.
    ///
    /// - Parameter call: The closure. It must not block.
    package init?(_ call: @escaping @Sendable () -> Void) {
        body = Body(call)
        let wake: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
            // Never nil: it is the pointer passed below, which `deinit` keeps valid.
            guard let context else { return }
            Unmanaged<Body>.fromOpaque(context).takeUnretainedValue().call()
        }
        guard clinux_add_drain_waiter(wake, Unmanaged.passUnretained(body).toOpaque()) else { return nil }
    }

    deinit {
        guard clinux_remove_drain_waiter(Unmanaged.passUnretained(body).toOpaque()) else {
            // A worker without a CPU is still in the call: its closure stays for ever.
            _ = Unmanaged.passRetained(body)
            return
        }
    }
}
