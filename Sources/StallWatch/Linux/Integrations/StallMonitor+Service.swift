#if ServiceLifecycle
    import LinuxSupport

    extension StallMonitor {
        /// Stops the monitor on a thread of its own, so that no thread of Swift's pool is blocked.
        func stopOnThread() async {
            await withCheckedContinuation { continuation in
                let end = { @Sendable [self] in
                    stop()
                    continuation.resume()
                }
                guard let thread = try? WorkerThread(name: "stallwatch-stop", body: end) else { return end() }
                thread.detach()
            }
        }
    }
#endif
