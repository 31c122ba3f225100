#if ServiceLifecycle
    public import ServiceLifecycle
    import StallReports
#endif

extension StallMonitor {
    /// The shortest limit of an operation, 10 ms.
    ///
    /// A shorter one counts as this.
    public static let minimumOperationLimit = Duration.milliseconds(10)

    /// Runs an operation that should end within a time, and reports it once if it does not.
    ///
    /// ```swift
    /// let feed = try await monitor.operation("GET /feed", over: .seconds(5)) {
    ///     try await loadFeed()
    /// }
    /// ```
    ///
    /// When the limit is over, a thread of the monitor finds out what the operation's task waits for, to the end of the
    /// chain: other tasks, groups, actors and the thread that runs them, a sleep or a continuation. The report has the
    /// kind `overdue`, and it is written while the operation lasts. If a checked continuation at the end of the chain is in
    /// no memory any more, the report is replaced a second and more later by one that says that it is likely never
    /// resumed. Nothing is canceled.
    ///
    /// Operations may be nested, and each has its own limit. An operation that begins while the monitor does not run is not
    /// watched; nor is one while 10,000 others are in progress: ``Statistics/unwatchedOperations`` counts those. An
    /// operation that ends within some milliseconds after its limit may have no report.
    ///
    /// It costs the task two short sections under a lock, and a clock read: some 100 ns. An operation whose limit is over
    /// before that of all others also wakes the monitor's thread, which the first one starts.
    ///
    /// - Parameters:
    ///   - name: The name, as the label of the report: at most 128 bytes of UTF-8. Use few different ones, as for a metric.
    ///   - limit: The time from which the operation is overdue: ``minimumOperationLimit`` or more.
    ///   - isolation: The actor on which the operation is called and runs.
    ///   - body: The operation.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`.
    public func operation<Result>(
        _ name: String, over limit: Duration, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        let operation = begin(name, limit, nil)
        defer { end(operation) }
        return try await body()
    }

    /// Runs an operation that should end within a time, with a context for the reports of its stalls, too.
    ///
    /// The label of the context is the operation's name, and the report has the context. It costs a task-local value more
    /// than ``operation(_:over:isolation:_:)-(String,_,_,_)``.
    ///
    /// - Parameters:
    ///   - context: The context, which is also ``StallContext/current`` meanwhile.
    ///   - limit: The time from which the operation is overdue: ``minimumOperationLimit`` or more.
    ///   - isolation: The actor on which the operation is called and runs.
    ///   - body: The operation.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`.
    public func operation<Result>(
        _ context: StallContext, over limit: Duration, isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws -> Result
    ) async rethrows -> Result {
        let operation = begin(context.label, limit, context)
        defer { end(operation) }
        return try await StallContext.$current.withValue(context, operation: body, isolation: isolation)
    }
}

#if ServiceLifecycle
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
    }
#endif
