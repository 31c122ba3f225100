import StallReports

#if NIO
    public import NIOCore
    import Synchronization

    extension WatchedLoop {
        /// Returns an event loop of SwiftNIO to watch by heartbeats.
        ///
        /// The watchdog sends the loop a task twice per threshold. The loop stalls if the task has not run within the
        /// threshold. A report's duration counts from the time that the task was sent. The stall may be older by up to
        /// ``StallReport/startUncertaintyMilliseconds``. Watching ends when the loop shuts down. Each heartbeat costs
        /// the loop one empty task.
        ///
        /// - Parameters:
        ///   - loop: The event loop.
        ///   - label: The loop's name in reports.
        ///   - threshold: The longest time until a task runs; `nil` for the monitor's threshold.
        /// - Returns: The loop, for ``StallMonitor/watch(_:)``.
        public static func eventLoop(_ loop: any EventLoop, label: String, threshold: StallThreshold? = nil)
            -> WatchedLoop
        {
            WatchedLoop(label: label, threshold: threshold, identity: ObjectIdentifier(loop)) {
                factory throws(StallWatchError) in
                [try factory.monitor { _ in .eventLoop(loop) }]
            }
        }

        /// Returns the current event loops of a group, each watched by heartbeats like
        /// ``eventLoop(_:label:threshold:)``.
        ///
        /// A report names the thread of the loop that stalled.
        ///
        /// - Parameters:
        ///   - group: The group. Event loops that it adds later are not watched.
        ///   - label: The name of all these loops in reports.
        ///   - threshold: The longest time until a task runs; `nil` for the monitor's threshold.
        /// - Returns: The loops, for ``StallMonitor/watch(_:)``.
        public static func eventLoops(
            of group: any EventLoopGroup, label: String, threshold: StallThreshold? = nil
        ) -> WatchedLoop {
            WatchedLoop(label: label, threshold: threshold, identity: ObjectIdentifier(group)) {
                factory throws(StallWatchError) in
                var monitors: [LoopMonitor] = []
                for loop in group.makeIterator() { monitors.append(try factory.monitor { _ in .eventLoop(loop) }) }
                return monitors
            }
        }
    }

    extension LoopSource where Self == HeartbeatSource {
        /// Returns a source for an event loop of SwiftNIO.
        static func eventLoop(_ loop: any EventLoop) -> HeartbeatSource {
            let end = EventLoopEnd()
            // Scheduling fails only if the loop has already shut down; sending it a task would then be an error.
            let callback = try? loop.scheduleCallback(at: .distantFuture, handler: end)
            return HeartbeatSource(
                kind: .eventLoop, idle: EventLoopIdleCheck(), unless: { callback == nil || end.hasCome },
                whenRemoved: { callback?.cancel() }
            ) { loop.execute($0) }
        }
    }

    /// Notices that an event loop shuts down, by a callback that is never due and is cancelled at that time.
    ///
    /// NIO has no function that tells whether a loop is closed. A task sent to a closed loop is an error that NIO
    /// prints, or that ends the process (`SelectableEventLoop._schedule0`).
    private final class EventLoopEnd: NIOScheduledCallbackHandler, Sendable {
        private let flag = Atomic<Bool>(false)

        var hasCome: Bool { flag.load(ordering: .acquiring) }

        /// Never called: the callback is due in 292 years.
        func handleScheduledCallback(eventLoop: some EventLoop) {}

        func didCancelScheduledCallback(eventLoop: some EventLoop) {
            flag.store(true, ordering: .releasing)
        }
    }
#endif
