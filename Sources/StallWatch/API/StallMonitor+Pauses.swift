import LinuxSupport

extension StallMonitor {
    /// Runs `body` without watching any loop.
    ///
    /// No turn can become a stall while `body` runs. Turns that are still in progress afterwards are measured from the
    /// end of the pause. Pauses nest. A pause costs two atomic operations.
    ///
    /// - Parameter body: The work that may take long.
    /// - Returns: The result of `body`.
    /// - Throws: The error that `body` throws.
    public func paused<Result, Failure>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        watchdog.pauses.begin()
        defer { watchdog.pauses.end(at: monotonicNow()) }
        return try body()
    }

    /// Begins a pause, like ``paused(_:)``, for code that a closure does not fit.
    ///
    /// The pause ends with ``IgnoreScope/end()``, or when the scope is destroyed.
    ///
    /// - Returns: The scope of the pause.
    public func ignoreScope() -> IgnoreScope {
        watchdog.pauses.begin()
        return IgnoreScope(pauses: watchdog.pauses)
    }

    /// A pause during which no loop is watched.
    public struct IgnoreScope: ~Copyable, Sendable {
        fileprivate let pauses: PauseState

        /// Ends the pause.
        public consuming func end() {}

        deinit {
            pauses.end(at: monotonicNow())
        }
    }
}
