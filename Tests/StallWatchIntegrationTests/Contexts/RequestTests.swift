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
            var configuration = StallMonitor.Configuration(threshold: .milliseconds(40), reports: .none)
            configuration.sinks = [.closure { report in reports.withLock { $0.append(report) } }]
            configuration.reportsEveryRepeat = true
            configuration.maximumReportsPerMinute = 1_000
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
