#if NIO
    import NIOCore
    import NIOPosix
    import StallWatch

    extension Scenario {
        /// Event loops of SwiftNIO.
        static let eventLoopScenarios: [Scenario] = [
            .stalling(
                "nio-loop-blocked", "a task on an event loop of SwiftNIO sleeps", times: 3,
                .heartbeat("nio", .eventLoop, in: "sleepTooLong(for:)")
            ) { context in
                try await withEventLoops { group in
                    try await context.watch(.eventLoops(of: group, label: "nio"))
                    await pause(context.threshold)
                    return try await group.next().submit { DrivenLoop.time { sleepTooLong(for: context.stall) } }.get()
                }
            },
            .quiet("nio-loop-busy", "the event loops run short tasks and then shut down") { context in
                try await withEventLoops { group in
                    try await context.watch(.eventLoops(of: group, label: "nio"))
                    for _ in 0..<60 { try await group.next().submit { sleepTooLong(for: .milliseconds(10)) }.get() }
                }
                // A loop that has shut down does not answer its heartbeat, and that is no stall.
                await pause(context.threshold * 2)
                return nil
            },
        ]

        /// Runs `body` with a group of two event loops and shuts the group down.
        private static func withEventLoops<Result: Sendable>(
            _ body: (any EventLoopGroup) async throws -> Result
        ) async throws -> Result {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
            let result = try await body(group)
            try await group.shutdownGracefully()
            return result
        }
    }
#else
    extension Scenario {
        /// Needs the package trait `NIO`.
        static let eventLoopScenarios: [Scenario] = []
    }
#endif
