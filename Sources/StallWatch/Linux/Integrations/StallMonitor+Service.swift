import StallReports
import LinuxSupport

#if ServiceLifecycle
    public import ServiceLifecycle

    extension StallMonitor: Service {
        /// Runs the monitor until the service group shuts down gracefully or the task is cancelled.
        ///
        /// It starts the monitor unless the monitor is already running. At the end it stops the monitor: a stall that
        /// still lasts is reported as `abandoned`, and every sink receives the reports that wait for it.
        ///
        /// - Throws: The errors of ``start()``, except ``StallWatchError/Code/alreadyStarted``.
        public func run() async throws {
            do {
                try start()
            } catch {
                // If the app started the monitor before the group, that was to see the stalls of its own start. A
                // condition of the `catch` instead crashes the compiler of Swift 6.2.
                guard error.code == .alreadyStarted else { throw error }
            }
            // Cancellation and graceful shutdown both end the wait.
            try? await gracefulShutdown()
            await stopOnThread()
        }

        /// Stops the monitor on a thread of its own, so that no thread of Swift's pool is blocked.
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
