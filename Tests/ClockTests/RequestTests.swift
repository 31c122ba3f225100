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

    /// A server has 100 requests at a time, one of which blocks its event loop.
    @Suite(.serialized) struct RequestTests {
        private static let requests = 100
        private static let rounds = 5

        /// How a server carries out a request.
        enum Style: CaseIterable {
            /// In a scope, on the event loop.
            case scope
            /// In a task that the event loop runs.
            case task
        }

        @Test(arguments: Style.allCases)
        func `the report names the request that blocked`(style: Style) throws {
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            defer { try? group.syncShutdownGracefully() }
            let reports = Mutex<[StallReport]>([])
            var configuration = StallMonitor.Configuration(threshold: .milliseconds(40), outputs: [])
            configuration.outputs += [.closure { report in reports.withLock { $0.append(report) } }]
            configuration.repeats.reportsEveryRepeat = true
            configuration.repeats.maximumReportsPerMinute = 1_000
            let monitor = try StallMonitor(configuration)
            try monitor.watch(.eventLoops(of: group, label: "http"))
            try monitor.start()
            defer { monitor.stop() }
            let server = try RequestServer(on: group, style: style)
            for round in 0..<Self.rounds {
                reports.withLock { $0.removeAll() }
                let blocked = (round * 37 + 11) % Self.requests
                try server.serve(Self.requests, blocking: blocked)
                #expect(eventually { reports.withLock { $0.contains { $0.state == .ended } } })
                let report = try #require(reports.withLock { $0.first { $0.state == .ended } })
                let expected = RequestServer.request(blocked)
                #expect(report.context?.label == expected.route && report.context?.traceID == expected.trace)
                if style == .task {
                    #expect(report.context?.taskName == "request \(blocked)")
                    #expect(report.context?.taskID == server.blockedTask)
                }
            }
        }
    }
#endif

#if NIO
    import Glibc
    import LinuxSupport
    import NIOCore
    import NIOPosix
    import StallReports
    import StallWatch
    import Synchronization

    /// A server on loopback whose requests are single numbers, each with a route and a trace.
    final class RequestServer: Sendable {
        private let group: MultiThreadedEventLoopGroup
        private let channel: any Channel
        private let handling: Handling

        /// The request that blocks, and the task that ran it.
        fileprivate final class Handling: Sendable {
            let blocked = Atomic<Int>(-1)
            let task = Atomic<UInt64>(0)
            /// The task that the event loop runs.
            let running = Atomic<UInt64>(0)
            let style: RequestTests.Style
            init(_ style: RequestTests.Style) { self.style = style }
        }

        /// The route and the trace of a request.
        static func request(_ number: Int) -> (route: String, trace: String) {
            ("GET /items/\(number)", hexadecimal(UInt64(number + 1), width: 32))
        }

        /// The id of the task that blocked; 0 without one.
        var blockedTask: UInt64 { handling.task.load(ordering: .acquiring) }

        init(on group: MultiThreadedEventLoopGroup, style: RequestTests.Style) throws {
            self.group = group
            let handling = Handling(style)
            self.handling = handling
            channel = try ServerBootstrap(group: group)
                .serverChannelOption(.backlog, value: 256)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Handler(handling))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).wait()
        }

        deinit { try? channel.close().wait() }

        /// Sends that many requests at once, one of which blocks, and waits for all answers.
        func serve(_ count: Int, blocking blocked: Int) throws {
            handling.blocked.store(blocked, ordering: .releasing)
            // Read before the requests are sent: `localAddress` is set once the channel is bound.
            guard let address = channel.localAddress else { return }
            let clients = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            defer { try? clients.syncShutdownGracefully() }
            let closed = try (0..<count).map { number in
                let client = try ClientBootstrap(group: clients).connect(to: address).wait()
                var bytes = client.allocator.buffer(capacity: 8)
                bytes.writeInteger(Int64(number))
                return (client, bytes)
            }.map { client, bytes in
                client.writeAndFlush(bytes, promise: nil)
                return client.closeFuture
            }
            for future in closed { try future.wait() }
        }

        /// Answers each request by closing its connection.
        private final class Handler: ChannelInboundHandler {
            typealias InboundIn = ByteBuffer
            private let handling: Handling

            init(_ handling: Handling) { self.handling = handling }

            func channelRead(context: ChannelHandlerContext, data: NIOAny) {
                var bytes = unwrapInboundIn(data)
                guard let number = bytes.readInteger(as: Int64.self).map(Int.init) else { return }
                let (route, trace) = RequestServer.request(number)
                let stall = StallContext(route, traceID: trace)
                let channel = context.channel
                let handling = handling
                switch handling.style {
                case .scope:
                    withStallContext(stall) { Self.answer(number, handling) }
                    channel.close(promise: nil)
                case .task:
                    Self.start(number, stall, channel, handling, LoopExecutor(context.eventLoop, handling))
                }
            }

            private static func start(
                _ number: Int, _ stall: StallContext, _ channel: any Channel, _ handling: Handling,
                _ executor: LoopExecutor
            ) {
                let work: @Sendable () async -> Void = { await run(number, stall, channel, handling) }
                Task(name: "request \(number)", executorPreference: executor, operation: work)
            }

            private static func run(
                _ number: Int, _ stall: StallContext, _ channel: any Channel, _ handling: Handling
            ) async {
                await StallContext.$current.withValue(stall) {
                    await Task.yield()
                    answer(number, handling)
                }
                channel.close(promise: nil)
            }

            private static func answer(_ number: Int, _ handling: Handling) {
                guard number == handling.blocked.load(ordering: .acquiring) else { return }
                handling.task.store(handling.running.load(ordering: .acquiring), ordering: .releasing)
                usleep(150_000)
            }
        }
    }

    /// Runs tasks on an event loop, and notes which one runs.
    private final class LoopExecutor: TaskExecutor {
        private let loop: any EventLoop
        private let handling: RequestServer.Handling

        init(_ loop: any EventLoop, _ handling: RequestServer.Handling) {
            self.loop = loop
            self.handling = handling
        }

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            loop.execute { [self] in
                // "UnownedJob(id: 12)".
                handling.running.store(UInt64(job.description.filter(\.isNumber)) ?? 0, ordering: .releasing)
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
    }
#endif
