#if NIO
    import Glibc
    import LinuxSupport
    import NIOCore
    import NIOPosix
    import StallReports
    import StallWatch
    import Synchronization
    import TestSupport
    import Testing

    /// An event loop has 100 requests at a time, one of which blocks it.
    @Suite(.serialized) struct RequestTests {
        private static let requests = 100
        private static let rounds = 3

        enum Style: CaseIterable {
            /// In a scope, on the event loop.
            case scope
            /// In a task that the event loop runs.
            case task
        }

        @Test(arguments: Style.allCases)
        func `the report names the request that blocked`(style: Style) async throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let reports = Collected<StallReport>()
            var configuration = StallMonitor.Configuration(threshold: .milliseconds(40), outputs: [])
            configuration.outputs += [.closure(reports.add)]
            configuration.symbols.lookup = .none
            configuration.repeats.reportsEveryRepeat = true
            configuration.repeats.maximumReportsPerMinute = 1_000
            let monitor = try StallMonitor(configuration)
            try monitor.watch(.eventLoops(of: group, label: "http"))
            try monitor.start()
            let executor = LoopExecutor(group.next())
            var ended: [StallReport] { reports.all.filter { $0.state == .ended } }
            for round in 0..<Self.rounds {
                let blocked = (round * 37 + 11) % Self.requests
                let before = ended.count
                await serve(style, blocking: blocked, on: executor)
                // A busy machine may make a stall of another request, a shorter one. A heartbeat misses the begin of a turn.
                func blockedTurn() -> StallReport? { ended.dropFirst(before).first { $0.durationMilliseconds >= 75 } }
                #expect(eventually { blockedTurn() != nil }, "round \(round): \(monitor.statistics)")
                let context = try #require(blockedTurn()?.context)
                #expect(context.label == "GET /items/\(blocked)" && context.traceID == Self.trace(of: blocked))
                if style == .task {
                    #expect(context.taskName == "request \(blocked)")
                    #expect(context.taskID == executor.blockedTask.load(ordering: .acquiring))
                }
            }
            monitor.stop()
            try await group.shutdownGracefully()
        }

        private static func trace(of number: Int) -> String { hexadecimal(UInt64(number + 1), width: 32) }

        /// Carries out all requests at once, one of which blocks, and waits for their end.
        private func serve(_ style: Style, blocking blocked: Int, on executor: LoopExecutor) async {
            await withDiscardingTaskGroup { group in
                for number in 0..<Self.requests {
                    let context = StallContext("GET /items/\(number)", traceID: Self.trace(of: number))
                    let answer: @Sendable () -> Void = {
                        guard number == blocked else { return }
                        executor.blockedTask.store(
                            executor.running.load(ordering: .acquiring), ordering: .releasing)
                        usleep(150_000)
                    }
                    switch style {
                    case .scope:
                        let future = executor.loop.submit { withStallContext(context) { answer() } }
                        group.addTask { try? await future.get() }
                    case .task:
                        group.addTask(name: "request \(number)", executorPreference: executor) {
                            await StallContext.$current.withValue(context) {
                                await Task.yield()
                                answer()
                            }
                        }
                    }
                }
            }
        }
    }

    /// Runs tasks on an event loop, and remembers which one runs.
    private final class LoopExecutor: TaskExecutor {
        let loop: any EventLoop
        let running = Atomic<UInt64>(0)
        let blockedTask = Atomic<UInt64>(0)

        init(_ loop: any EventLoop) { self.loop = loop }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            loop.execute { [self] in
                // "UnownedJob(id: 12)".
                running.store(UInt64(job.description.filter(\.isNumber)) ?? 0, ordering: .releasing)
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
    }
#endif
