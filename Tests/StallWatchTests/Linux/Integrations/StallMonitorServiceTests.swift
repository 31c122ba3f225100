@testable import LinuxSupport

#if ServiceLifecycle
    import Glibc
    import Logging
    import ServiceLifecycle
    import TestSupport
    import Testing

    @testable import StallWatch

    /// The time limit ends a test whose service group does not end.
    @Suite(.timeLimit(.minutes(10))) struct ServiceTests {
        @Test func aServiceGroupStartsTheMonitorAndFinishesTheOpenReport() async throws {
            let scratch = try TemporaryDirectory()
            let monitor = try StallMonitor(.init(threshold: .milliseconds(20), reports: .directory(scratch.path)))
            let probe = LoopProbe(label: "probe")
            try monitor.watch(.probe(probe))
            let group = ServiceGroup(
                configuration: .init(services: [.init(service: monitor)], logger: Logger(label: "test"))
            )
            async let running: Void = group.run()
            #expect(
                await Self.eventuallyAsync { monitor.statistics.loops.first.map { $0.watchedSeconds > 0 } ?? false })
            // A turn that outlasts the group.
            let isOver = LinuxSupport.Semaphore()
            let thread = try WorkerThread(name: "test-loop") {
                probe.beginTurn()
                isOver.wait()
                probe.endTurn()
            }
            defer {
                isOver.post()
                thread.join()
            }
            #expect(await Self.eventuallyAsync { (try? scratch.reports().first?.state) == .ongoing })
            await group.triggerGracefulShutdown()
            try await running
            #expect(try scratch.reports().map(\.state) == [.abandoned])
            #expect(throws: StallWatchError.self) { try monitor.start() }
        }

        private static func eventuallyAsync(_ condition: () -> Bool) async -> Bool {
            for _ in 0..<2_000 {
                if condition() { return true }
                try? await Task.sleep(for: .milliseconds(10))
            }
            return condition()
        }
    }
#endif
