import LinuxSupport

extension StallMonitor {
    /// Runs `body` without being watched: while it runs no turn of any loop can become a stall, and afterwards the
    /// turns that last are measured anew.
    ///
    /// Nests. Costs two atomic operations.
    public func paused<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        watchdog.pauses.begin()
        defer { watchdog.pauses.end(at: monotonicNow()) }
        return try body()
    }

    /// Begins a stretch that is not watched, like ``paused(_:)``, where a closure does not fit.
    ///
    /// It ends with ``IgnoreScope/end()``, or when the scope is dropped.
    public func ignoreScope() -> IgnoreScope {
        watchdog.pauses.begin()
        return IgnoreScope(pauses: watchdog.pauses)
    }

    /// A stretch in which nothing is watched.
    public struct IgnoreScope: ~Copyable, Sendable {
        fileprivate let pauses: PauseState

        /// Ends the stretch.
        public consuming func end() {}

        deinit {
            pauses.end(at: monotonicNow())
        }
    }
}
