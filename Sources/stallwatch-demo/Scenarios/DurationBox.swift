import Synchronization

/// The longest of several durations, measured on one thread and read on another.
final class DurationBox: Sendable {
    private let longest = Mutex(Duration.zero)

    var value: Duration { longest.withLock { $0 } }

    /// Runs `work` and keeps its duration if that is the longest so far.
    func measure(_ work: () -> Void) {
        let duration = SuspendingClock().measure(work)
        longest.withLock { $0 = max($0, duration) }
    }
}

extension DurationBox {
    /// The moment of the first call.
    final class Start: Sendable {
        private let start = Mutex<SuspendingClock.Instant?>(nil)

        /// Returns the time since the first call.
        func elapsed() -> Duration {
            let now = SuspendingClock.now
            return start.withLock { start in
                let first = start ?? now
                start = first
                return now - first
            }
        }
    }
}
