import Synchronization

/// Where one thread leaves how long something took for another.
final class DurationBox: Sendable {
    private let longest = Mutex(Duration.zero)

    var value: Duration { longest.withLock { $0 } }

    /// Runs `work`, and keeps how long it took if that is the longest so far.
    func measure(_ work: () -> Void) {
        let duration = SuspendingClock().measure(work)
        longest.withLock { $0 = max($0, duration) }
    }
}

extension DurationBox {
    /// The moment at which something was first looked at.
    final class Start: Sendable {
        private let start = Mutex<SuspendingClock.Instant?>(nil)

        /// The time since the first call.
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
