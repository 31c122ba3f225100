#if NIO
    import NIOPosix
    import StallReports
    import Synchronization

    extension LoopSource where Self == HeartbeatSource {
        /// Returns a source for a thread pool of SwiftNIO, which sends it an empty item; `nil` for a pool that does not run.
        static func threadPool(_ pool: NIOThreadPool) -> HeartbeatSource? {
            let threads = ThreadPoolThreads(pool.numberOfThreads)
            // A pool that does not run returns an item at once, on the caller's thread (NIOThreadPool.swift, `_submit`).
            pool.submit { threads.note($0) }
            guard !threads.haveEnded else { return nil }
            return HeartbeatSource(
                kind: .threadPool, owner: { threads.target }, idle: threads, unless: { threads.haveEnded }
            ) { item in
                pool.submit { state in
                    threads.note(state)
                    // Also of a pool that has shut down: nothing is late in it.
                    item()
                }
            }
        }
    }

    /// The threads of a pool of SwiftNIO, which keeps them to itself: those that have run a heartbeat, and how many there are.
    ///
    /// The pool keeps its threads until it shuts down. An idle pool gives the next item to the thread that has waited longest
    /// (pthread_cond_signal(3)), so that soon all are known.
    private final class ThreadPoolThreads: IdleCheck {
        let width: Int?
        private let ended = Atomic<Bool>(false)
        // A mutex for the compiler: only the watchdog uses it.
        private let known = Mutex<[Int32]>([])

        init(_ count: Int) { width = count }

        /// Whether the pool does not run items any more.
        var haveEnded: Bool { ended.load(ordering: .acquiring) }

        func note(_ state: NIOThreadPool.WorkItemState) {
            if state == .cancelled { ended.store(true, ordering: .releasing) }
        }

        var target: CaptureTarget { .threads(known.withLock { $0 }) }

        /// Learns the thread of the last heartbeat.
        ///
        /// Whether the pool is idle is private to it, so that it always gets the next one.
        func isIdle(thread: Int32?, lastDelay: UInt64) -> Bool {
            known.withLock { known in
                if let thread, !known.contains(thread) { known.append(thread) }
            }
            return false
        }
    }
#endif
