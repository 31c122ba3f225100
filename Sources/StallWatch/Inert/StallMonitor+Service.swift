#if ServiceLifecycle
    import StallReports
    public import ServiceLifecycle

    extension StallMonitor: Service {
        /// Waits until the service group shuts down gracefully or the task is cancelled, then stops.
        ///
        /// - Throws: The errors of ``start()``, except ``StallWatchError/Code/alreadyStarted``.
        public func run() async throws {
            do {
                try start()
            } catch  where error.code == .alreadyStarted {
                // The app started the monitor before the group.
            }
            // Cancellation and graceful shutdown both end the wait.
            try? await gracefulShutdown()
            stop()
        }
    }
#endif
