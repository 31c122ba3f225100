import TestSupport

@testable import LinuxSupport

#if Metrics
    import Foundation
    import LinuxSupport
    import Metrics
    import MetricsTestKit
    import Testing

    @testable import StallWatch

    @Suite struct MetricsSinkTests {
        @Test func everyStallIsCountedOnceWithFixedLabels() throws {
            let metrics = TestMetrics()
            _ = try withReporter([.metrics(factory: metrics)]) { reporter in
                for _ in 0..<5 { reporter.submit(.fixture(function: 1, milliseconds: 300)) }
                var missed = StallRecord.fixture(function: 2, loop: "worker", milliseconds: 700)
                (missed.samples, missed.missed, missed.missedReason) = ([], 1, "the turn had ended")
                reporter.submit(missed)
                let lasting = StallRecord.fixture(function: 3, state: .ongoing)
                reporter.submit(lasting)
                reporter.submit(lasting.after(milliseconds: 900, state: .abandoned))
            }
            let main = [("kind", "stall"), ("loop", "main"), ("cause", "unknown")]
            let worker = [("kind", "stall"), ("loop", "worker"), ("cause", "unknown")]
            #expect(try metrics.expectCounter("stallwatch.stalls", main).totalValue == 6)
            #expect(try metrics.expectCounter("stallwatch.stalls", worker).totalValue == 1)
            let milliseconds: (Int64) -> Int64 = { $0 * 1_000_000 }
            #expect(
                try metrics.expectTimer("stallwatch.stall.duration", main).values
                    == [300, 300, 300, 300, 300, 900].map(milliseconds)
            )
            #expect(try metrics.expectTimer("stallwatch.stall.duration", worker).values == [milliseconds(700)])
            #expect(
                try metrics.expectTimer("stallwatch.watchdog.lateness").values
                    == Array(repeating: milliseconds(1), count: 7))
            #expect(try metrics.expectCounter("stallwatch.suppressed", [("reason", "repeated")]).totalValue == 2)
            #expect(try metrics.expectCounter("stallwatch.suppressed", [("reason", "rateLimit")]).totalValue == 0)
            #expect(try metrics.expectCounter("stallwatch.missed").totalValue == 1)
            #expect(metrics.counters.count == 5)
            #expect(metrics.timers.count == 3)
        }

        /// Of many stalls between two looks only some have a report, which counts the others.
        @Test func `a report of several stalls counts them all`() throws {
            let metrics = TestMetrics()
            let sink = MetricsSink(metrics)
            var report = try StallReport.literal()
            report.missingSamplesReason = "the turn had ended"
            sink.receive(.init(ended: report, stalls: 12))
            #expect(metrics.counters.first { $0.label == "stallwatch.stalls" }?.totalValue == 12)
            #expect(try metrics.expectCounter("stallwatch.missed").totalValue == 12)
        }

        @Test func `names without end make no metrics without end`() throws {
            let metrics = TestMetrics()
            let sink = MetricsSink(metrics)
            var report = try StallReport.literal()
            for number in 0..<MetricsSink.maximumPairs + 20 {
                report.loop.label = "GET /notes/\(number)"
                sink.receive(.init(ended: report))
            }
            let counters = metrics.counters.filter { $0.label == "stallwatch.stalls" }
            #expect(counters.count == MetricsSink.maximumPairs + 1)
            #expect(counters.map(\.totalValue).max() == 20)
        }

        @Test func `loops without end make no metrics without end`() {
            let metrics = TestMetrics()
            let sink = MetricsSink(metrics)
            for number in 0..<MetricsSink.maximumPairs + 20 {
                var loop = LoopStatistics(label: "import \(number)")
                loop.turns = 1
                sink.receive(.init([loop]))
            }
            let turns = metrics.counters.filter { $0.label == "stallwatch.eventloop.turns" }
            #expect(turns.count == MetricsSink.maximumPairs + 1)
            #expect(turns.map(\.totalValue).max() == 20)
        }

        /// Whatever a report says, the number of labels has a limit.
        @Test func `each known cause has a label of its own, and any other is unknown`() throws {
            let metrics = TestMetrics()
            let sink = MetricsSink(metrics)
            let kinds: [StallReport.CauseKind] = [
                .cpu, .lock, .io, .sleep, .syscall, .paging, .cpuContention, .throttled, .deadlock, .continuation,
                .unknown,
            ]
            for kind in kinds + [.init(rawValue: "gremlins")] {
                var report = try StallReport.literal()
                report.cause = .fixture(kind: kind)
                sink.receive(.init(.recovered, report))
            }
            for kind in kinds {
                let labels = [("kind", "stall"), ("loop", "main"), ("cause", kind.rawValue)]
                let count = try metrics.expectCounter("stallwatch.stalls", labels).totalValue
                #expect(count == (kind == .unknown ? 2 : 1), "\(kind)")
            }
        }

        @Test func `an interval is recorded as counters and gauges`() throws {
            let metrics = TestMetrics()
            let sink = MetricsSink(metrics)
            func loop(_ label: String, utilization: Double?, threshold: Int, busy: Int = 0) -> LoopStatistics {
                var loop = LoopStatistics(label: label)
                loop.utilization = utilization
                (loop.threshold, loop.busyTime) = (.milliseconds(threshold), .milliseconds(busy))
                return loop
            }
            var busy = loop("main", utilization: 0.25, threshold: 50, busy: 200)
            busy.turns = 100
            let buckets: [(Duration?, UInt64)] = [
                (.milliseconds(1), 85), (.milliseconds(4), 13), (.milliseconds(20), 1), (nil, 1),
            ]
            busy.latency = buckets.map { LatencyBucket(upperBound: $0, turns: $1) }
            sink.receive(.init([busy, loop("nio", utilization: nil, threshold: 100)]))
            sink.receive(.init([loop("main", utilization: 0, threshold: 60)]))
            let main = [("loop", "main")]
            #expect(try metrics.expectCounter("stallwatch.eventloop.turns", main).totalValue == 100)
            for (name, values) in [
                ("delay.mean", [0.002]), ("delay.p50", [0.001]), ("delay.p90", [0.004]), ("delay.p99", [0.02]),
                ("delay.max", [17_592.186_044_416]), ("utilization", [0.25, 0]), ("threshold", [0.05, 0.06]),
            ] {
                #expect(try metrics.expectGauge("stallwatch.eventloop.\(name)", main).values == values, "\(name)")
            }
            #expect(try metrics.expectGauge("stallwatch.eventloop.threshold", [("loop", "nio")]).values == [0.1])
            #expect(try metrics.expectGauge("stallwatch.eventloop.utilization", [("loop", "nio")]).values == [])
        }

        /// swift-prometheus writes a dot as `_`, and a timer as a histogram.
        @Test(arguments: ["prometheus/stallwatch.rules.yml", "prometheus/stallwatch.test.yml", "grafana/metrics.json"])
        func `rules and dashboard have names of metrics that are made`(file: String) throws {
            let metrics = TestMetrics()
            let sink = MetricsSink(metrics)
            sink.receive(.init([LoopStatistics(label: "main")]))
            sink.receive(.init(.recovered, try .literal()))
            let timers = metrics.timers.flatMap { timer in ["_sum", "_count", "_bucket"].map { timer.label + $0 } }
            let made = metrics.counters.map(\.label) + metrics.recorders.map(\.label) + timers
            let known = Set(made.map { $0.replacingOccurrences(of: ".", with: "_") })
            let path = Repository.root.appendingPathComponent("Fleet/" + file)
            // A name that follows a colon is a recording rule's.
            let names = try String(contentsOf: path, encoding: .utf8).matches(of: /(?:^|[^:\w])(stallwatch_\w+)/)
            let used = Set(names.map { String($0.1) })
            #expect(used.count == 9)
            #expect(used.subtracting(known) == [])
        }

        @Test(arguments: [Duration.milliseconds(999), .seconds(3_601)])
        func `an interval out of range is refused`(interval: Duration) {
            let sink = ReportOutput.metrics(factory: TestMetrics(), every: interval)
            let error = #expect(throws: StallWatchError.self) {
                try StallMonitor(.init(outputs: [sink]))
            }
            #expect(error?.code == .invalidConfiguration)
        }

        @Test func `the watchdog ends the intervals of a monitor`() throws {
            let metrics = TestMetrics()
            let probe = LoopProbe(label: "probe")
            let monitor = try StallMonitor(
                .init(outputs: [.metrics(factory: metrics, every: .seconds(3_600))]))
            try monitor.watch(.probe(probe))
            try monitor.start()
            // The interval begins with the first pass.
            let watchdog = try #require(monitor.engine as? LiveEngine).watchdog
            #expect(watchdog.waitForPass(until: endOfPatience))
            for _ in 0..<10 {
                probe.beginTurn()
                probe.endTurn()
            }
            monitor.stop()
            let name = "stallwatch.eventloop.turns"
            #expect(eventually { (try? metrics.expectCounter(name, [("loop", "probe")]).totalValue) == 10 })
        }
    }
#endif

#if ServiceLifecycle
    import Glibc
    import Logging
    import ServiceLifecycle
    import TestSupport
    import Testing

    @testable import StallWatch

    /// The time limit ends a test whose service group does not end.
    @Suite(.timeLimit(.minutes(10))) struct ServiceTests {
        @Test func `a service group starts the monitor and finishes the open report`() async throws {
            let scratch = try TemporaryDirectory()
            let monitor = try StallMonitor(.init(threshold: .milliseconds(20), outputs: [.directory(scratch.path)]))
            let probe = LoopProbe(label: "probe")
            try monitor.watch(.probe(probe))
            let group = ServiceGroup(
                configuration: .init(services: [.init(service: monitor)], logger: Logger(label: "test"))
            )
            async let running: Void = group.run()
            #expect(
                await Self.eventuallyAsync { monitor.statistics.loops.first.map { $0.watchedTime > .zero } ?? false })
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
            #expect(await Self.eventuallyAsync { (try? scratch.reports().map(\.state)) == [.abandoned] })
            #expect(throws: StallWatchError.self) { try monitor.start() }
        }

        private static func eventuallyAsync(_ condition: () -> Bool) async -> Bool {
            let end = endOfPatience
            while monotonicNow() < end {
                if condition() { return true }
                try? await Task.sleep(for: .milliseconds(10))
            }
            return condition()
        }
    }
#endif
