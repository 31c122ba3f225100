#if !os(Linux) || STALLWATCH_INERT
    import StallWatch
    import Testing

    /// Runs code as it is, because StallWatch supports Linux only.
    struct StallCheck: Sendable {
        init(
            warn: Duration? = nil, fail: Duration, loops: [WatchedLoop] = [.main], baseline: String?,
            location: SourceLocation
        ) {}

        typealias Fail = (_ text: String, _ location: SourceLocation) -> Void

        func run(_ test: Test, _ function: @Sendable () async throws -> Void) async throws { try await function() }

        func runBlocking<Success, Failure>(
            fail: Fail? = nil, _ body: () throws(Failure) -> Success
        ) throws(Failure) -> Success {
            try body()
        }

        func run<Success>(
            function: String, isolation: isolated (any Actor)?, fail: Fail? = nil, _ body: () async throws -> Success
        ) async rethrows -> Success {
            try await body()
        }
    }

    /// Runs a test and dumps no hang.
    struct HangCheck: Sendable {
        let limit: Duration

        func run(_ test: Test, _ function: @Sendable () async throws -> Void) async throws { try await function() }
    }
#endif
