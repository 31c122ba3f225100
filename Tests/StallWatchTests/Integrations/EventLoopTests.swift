import TestSupport

#if NIO
    import NIOCore
    import NIOPosix
    import Testing

    @testable import StallWatch

    /// Heartbeats of NIO's own event loops.
    @Suite struct EventLoopTests {
        private let recorder = TurnRecorder(alarm: WatchdogAlarm())

        private func withGroup(_ body: (MultiThreadedEventLoopGroup) async throws -> Void) async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            try await body(group)
            try await group.shutdownGracefully()
        }

        @Test func aHeartbeatIsATurnOfTheLoopsThread() async throws {
            try await withGroup { group in
                let loop = group.next()
                let source: HeartbeatSource = .eventLoop(loop)
                #expect(source.kind == .eventLoop)
                let thread = try #require(try await loop.submit { ownThread() }.get())
                var time: UInt64 = 1_000
                for _ in 0..<3 {
                    #expect(source.beat(recorder, threshold: 100, at: time) != nil)
                    // Tasks run in the order of their submission.
                    try await loop.submit {}.get()
                    time += 100
                }
                #expect(recorder.snapshot().number == 2, "the first heartbeat only shows that the loop runs")
                #expect(source.target(of: recorder) == .thread(thread))
                source.remove()
            }
        }

        @Test func aLoopThatIsShutDownReceivesNoHeartbeat() async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let source: HeartbeatSource = .eventLoop(group.next())
            #expect(source.beat(recorder, threshold: 100, at: 1_000) != nil)
            try await group.shutdownGracefully()
            #expect(recorder.lastThread != nil, "the heartbeat sent before the shutdown has run")
            #expect(source.beat(recorder, threshold: 100, at: 2_000) == nil)
            #expect(recorder.snapshot().began == nil)
            source.remove()
        }

        @Test func everyLoopOfAGroupIsWatched() async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 3)
            let loops = try WatchedLoop.eventLoops(of: group, label: "nio")
                .makeMonitors(threshold: 1_000_000, alarm: WatchdogAlarm())
            #expect(loops.count == 3)
            #expect(loops.allSatisfy { $0.label == "nio" })
            for loop in loops { loop.source.remove() }
            try await group.shutdownGracefully()
        }
    }
#endif
