import StallReports
import LinuxSupport

#if ServiceLifecycle
    public import ServiceLifecycle

    extension StallMonitor: Service {
        /// Starts the monitor, unless it has been started, and runs until the service group shuts down gracefully or
        /// the task is cancelled.
        ///
        /// Then the monitor is stopped: a stall that still lasts is reported as `abandoned`, and every sink gets what
        /// waits for it.
        ///
        /// - Throws: What ``start()`` throws.
        public func run() async throws {
            do {
                try start()
            } catch  where error.code == .alreadyStarted {
                // Whoever wants to see the stalls of the app's own start has started it before the group.
            }
            // Cancelled or shut down: both ask for the same.
            try? await gracefulShutdown()
            await stopOnThread()
        }

        /// Stops the monitor without keeping a thread of Swift's pool waiting meanwhile.
        private func stopOnThread() async {
            await withCheckedContinuation { continuation in
                do throws(SystemError) {
                    let thread = try WorkerThread(name: "stallwatch-stop") { [self] in
                        stop()
                        continuation.resume()
                    }
                    thread.detach()
                } catch {
                    stop()
                    continuation.resume()
                }
            }
        }
    }
#endif
