#if Metrics
    import Metrics
    import MetricsTestKit
    import Testing

    @testable import StallWatch

    @Suite struct MetricsSinkTests {
        @Test func everyStallIsCountedOnceWithFixedLabels() throws {
            let metrics = TestMetrics()
            _ = try withReporter([.metrics(factory: metrics)]) { reporter in
                for _ in 0..<5 { reporter.submit(.fixture(function: 1, milliseconds: 300)) }
                reporter.submit(.fixture(function: 2, loop: "worker", milliseconds: 700))
                let lasting = StallRecord.fixture(function: 3, state: .ongoing)
                reporter.submit(lasting)
                reporter.submit(lasting.after(milliseconds: 900, state: .abandoned))
            }
            let main = [("kind", "stall"), ("loop", "main")]
            let worker = [("kind", "stall"), ("loop", "worker")]
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
            #expect(try metrics.expectCounter("stallwatch.held_back", [("reason", "repeated")]).totalValue == 2)
            #expect(try metrics.expectCounter("stallwatch.held_back", [("reason", "rateLimit")]).totalValue == 0)
            #expect(metrics.counters.count == 4)
            #expect(metrics.timers.count == 3)
        }
    }
#endif
