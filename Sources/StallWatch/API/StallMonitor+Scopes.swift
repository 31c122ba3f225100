extension StallMonitor {
    /// Runs `body` without watching any loop.
    ///
    /// ```swift
    /// monitor.withMonitoringPaused { importDocuments() }
    /// ```
    ///
    /// No turn can become a stall while `body` runs. Turns that are still in progress afterwards are measured from the
    /// end of the pause; a stall that goes on when it begins is reported as `abandoned`. Pauses nest. A pause costs two
    /// atomic operations.
    ///
    /// - Parameter body: The work that may take long.
    /// - Returns: The result of `body`.
    /// - Throws: The error that `body` throws.
    public func withMonitoringPaused<Result, Failure>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        engine.beginPause()
        defer { engine.endPause() }
        return try body()
    }

    /// Begins a pause, like ``withMonitoringPaused(_:)``, for code that a closure does not fit.
    ///
    /// - Returns: The pause, which ends with ``MonitoringPause/end()``, or when it is destroyed.
    public func beginPause() -> MonitoringPause {
        engine.beginPause()
        return MonitoringPause(engine: engine)
    }

    /// The shortest limit of ``withLimit(_:_:isolation:_:)-(_,String,_,_)``, 10 ms.
    ///
    /// A shorter one counts as this.
    public static let minimumLimit = Duration.milliseconds(10)

    /// Runs an operation that should end within a time, and reports it once if it does not.
    ///
    /// ```swift
    /// let feed = try await monitor.withLimit(.seconds(5), "GET /feed") {
    ///     try await loadFeed()
    /// }
    /// ```
    ///
    /// When the limit is over, a thread of the monitor finds out what the operation's task waits for, to the end of the
    /// chain: other tasks, groups, actors and the thread that runs them, a sleep or a continuation. The report has the
    /// kind `overdue`, and it is written while the operation lasts. If memory no longer refers to a checked continuation
    /// at the end of the chain, a later report, after a second or more, says that it is likely never resumed. Nothing is
    /// canceled.
    ///
    /// Operations may be nested, and each has its own limit. An operation that begins while the monitor does not run is not
    /// watched; nor is one while 10,000 others are in progress: ``MonitorStatistics/unwatchedOperations`` counts those. An
    /// operation that ends within some milliseconds after its limit may have no report.
    ///
    /// It costs the task two short sections under a lock, and a clock read: some 100 ns. An operation whose limit is over
    /// before that of all others also wakes the monitor's thread, which the first one starts.
    ///
    /// - Parameters:
    ///   - limit: The time from which the operation is overdue: ``minimumLimit`` or more.
    ///   - name: The name, as the label of the report: at most 128 bytes of UTF-8. Use few different ones, as for a metric.
    ///   - isolation: The actor on which the operation is called and runs.
    ///   - body: The operation.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`.
    public func withLimit<Result>(
        _ limit: Duration, _ name: String, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        let operation = engine.beginOperation(name, limit, nil)
        defer { engine.endOperation(operation) }
        return try await body()
    }

    /// Runs an operation that should end within a time, with a context for the reports of its stalls, too.
    ///
    /// The label of the context is the operation's name, and the report has the context. It costs a task-local value more
    /// than ``withLimit(_:_:isolation:_:)-(_,String,_,_)``.
    ///
    /// - Parameters:
    ///   - limit: The time from which the operation is overdue: ``minimumLimit`` or more.
    ///   - context: The context, which is also ``StallContext/current`` meanwhile.
    ///   - isolation: The actor on which the operation is called and runs.
    ///   - body: The operation.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`.
    public func withLimit<Result>(
        _ limit: Duration, _ context: StallContext, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        let operation = engine.beginOperation(context.label, limit, context)
        defer { engine.endOperation(operation) }
        return try await StallContext.$current.withValue(context, operation: body, isolation: isolation)
    }
}

/// A pause during which a monitor watches no loop.
public struct MonitoringPause: ~Copyable, Sendable {
    let engine: any MonitorEngine

    /// Ends the pause.
    public consuming func end() {}

    deinit {
        engine.endPause()
    }
}
