#if ServiceLifecycle
    import LinuxSupport

    extension StallMonitor {
        /// Stops the monitor on a thread of its own, so that no thread of Swift's pool is blocked.
        func stopOnThread() async {
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
