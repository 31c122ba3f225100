#if NIO
    import NIOCore
    import StallReports
    import Synchronization

    extension LoopSource where Self == HeartbeatSource {
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

    /// Notices that an event loop shuts down, by a callback that is never due and is cancelled then: NIO does not tell,
    /// and a task sent to a closed loop may end the process (`SelectableEventLoop._schedule0`).
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
