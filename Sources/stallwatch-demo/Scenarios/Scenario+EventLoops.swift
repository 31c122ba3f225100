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
            .quiet("nio-loop-busy", "the event loops have short tasks to run, and are then shut down") { context in
                try await withEventLoops { group in
                    try await context.watch(.eventLoops(of: group, label: "nio"))
                    for _ in 0..<60 { try await group.next().submit { sleepTooLong(for: .milliseconds(10)) }.get() }
                }
                // A loop that is gone does not answer, and is not late.
                await pause(context.threshold * 2)
                return nil
            },
        ]

        /// Runs `body` with a group of two event loops, and shuts it down.
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
