import StallReports

#if NIO
    public import NIOCore
    import Synchronization

    extension WatchedLoop {
        /// An event loop of SwiftNIO: a heartbeat is sent to it twice per threshold, and is late when it has not run
        /// within it.
        ///
        /// A report's duration counts from the heartbeat; ``StallReport/startUncertaintyMilliseconds`` says by how much the
        /// stall may be older. A loop that is shut down is watched no longer. Each heartbeat costs the loop one empty
        /// task.
        public static func eventLoop(_ loop: any EventLoop, label: String, threshold: Duration? = nil) -> WatchedLoop {
            WatchedLoop(label: label, threshold: threshold, identity: ObjectIdentifier(loop)) {
                factory throws(StallWatchError) in
                [try factory.monitor { _ in .eventLoop(loop) }]
            }
        }

        /// Every event loop that the group has now, each by heartbeats of its own: see ``eventLoop(_:label:threshold:)``.
        ///
        /// A report names the thread of the loop that stalled.
        public static func eventLoops(
            of group: any EventLoopGroup, label: String, threshold: Duration? = nil
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
        /// An event loop of SwiftNIO.
        static func eventLoop(_ loop: any EventLoop) -> HeartbeatSource {
            let end = EventLoopEnd()
            // Fails only for a loop that has ended already, of which NIO then complains.
            let callback = try? loop.scheduleCallback(at: .distantFuture, handler: end)
            return HeartbeatSource(
                kind: .eventLoop, unless: { callback == nil || end.hasCome }, whenRemoved: { callback?.cancel() }
            ) { loop.execute($0) }
        }
    }

    /// Notices that an event loop is shut down: a callback that is never due is cancelled then.
    ///
    /// There is no way to ask. A task that is sent to a loop that is closed is an error that NIO prints, or ends the
    /// process for (`SelectableEventLoop._schedule0`).
    private final class EventLoopEnd: NIOScheduledCallbackHandler, Sendable {
        private let flag = Atomic<Bool>(false)

        var hasCome: Bool { flag.load(ordering: .acquiring) }

        /// Never called: it is due in 292 years.
        func handleScheduledCallback(eventLoop: some EventLoop) {}

        func didCancelScheduledCallback(eventLoop: some EventLoop) {
            flag.store(true, ordering: .releasing)
        }
    }
#endif
