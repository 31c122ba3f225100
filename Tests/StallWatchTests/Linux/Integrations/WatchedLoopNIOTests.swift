import TestSupport

#if NIO
    import Glibc
    import LinuxSupport
    import NIOCore
    import NIOPosix
    import Testing

    @testable import StackCapture
    @testable import StallWatch

    @Suite struct EventLoopTests {
        private let recorder = TurnRecorder(alarm: WatchdogAlarm())

        private func withGroup(_ body: (MultiThreadedEventLoopGroup) async throws -> Void) async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            try await body(group)
            try await group.shutdownGracefully()
        }

        /// Waits until the thread waits in a call whose name begins so.
        private func isWaiting(_ thread: ThreadProbe, in call: String) -> Bool {
            eventually { thread.read()?.activity.call?.name.hasPrefix(call) == true }
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

        /// Each look finds the loop in its wait, once three heartbeats have shown where that is.
        @Test func `an idle loop is learned, and then gets no heartbeat`() async throws {
            try await withGroup { group in
                let loop = group.next()
                let source: HeartbeatSource = .eventLoop(loop)
                let id = try #require(try await loop.submit { ownThread() }.get())
                let thread = try ThreadProbe(thread: id)
                let end = endOfPatience
                // A heartbeat that runs late confirms nothing, so a busy machine needs more of them.
                var turns: UInt64 = .max
                while recorder.snapshot().number != turns, monotonicNow() < end {
                    turns = recorder.snapshot().number
                    _ = source.beat(recorder, threshold: 100, at: monotonicNow())
                    try await loop.submit {}.get()
                    try #require(isWaiting(thread, in: "epoll"))
                    if turns == 0 { turns = .max }
                }
                #expect(recorder.snapshot().number == turns)
                for _ in 0..<10 { _ = source.beat(recorder, threshold: 100, at: monotonicNow()) }
                #expect(recorder.snapshot().number == turns)
                // A timer does not end the wait without an end.
                let isDue = loop.scheduleTask(in: .seconds(60)) {}
                // The loop's thread takes the timer over in a turn of its own.
                try await loop.submit {}.get()
                try #require(isWaiting(thread, in: "epoll"))
                _ = source.beat(recorder, threshold: 100, at: monotonicNow())
                #expect(recorder.snapshot().number == turns)
                isDue.cancel()
                // While the loop runs something, it is not idle.
                let gate = Semaphore()
                loop.execute { gate.wait() }
                try #require(isWaiting(thread, in: "futex"))
                let time = monotonicNow()
                _ = source.beat(recorder, threshold: 100, at: time)
                #expect(recorder.snapshot().began == time)
                gate.post()
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
