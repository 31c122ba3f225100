import TestSupport

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
            #expect(metrics.counters.count == 4)
            #expect(metrics.timers.count == 3)
        }

        @Test func everyKnownCauseHasALabelOfItsOwn() throws {
            let metrics = TestMetrics()
            let kinds: [Cause.Kind] = [
                .cpu, .lock, .io, .sleep, .syscall, .paging, .cpuContention, .throttled, .deadlock, .unknown,
            ]
            _ = try withReporter([.metrics(factory: metrics)]) { reporter in
                for (index, kind) in kinds.enumerated() {
                    var record = StallRecord.fixture(function: index)
                    record.cause = Cause(
                        kind: kind, confidence: .certain,
                        evidence: Evidence(
                            split: TimeSplit(onCPU: 1, runQueue: 1, blocked: 1, uncertainty: 0), start: 0)
                    )
                    reporter.submit(record)
                }
            }
            for kind in kinds {
                let labels = [("kind", "stall"), ("loop", "main"), ("cause", kind.rawValue)]
                #expect(try metrics.expectCounter("stallwatch.stalls", labels).totalValue == 1)
            }
            #expect(Set(kinds.map { StallReport.CauseKind(rawValue: $0.rawValue) }) == StallReport.CauseKind.known)
        }

        /// A later version may have left such a report for the next process to recover.
        @Test func aCauseOfALaterVersionIsCountedAsUnknown() throws {
            let metrics = TestMetrics()
            let sink = MetricsSink(metrics)
            var report = try StallReport.literal()
            report.cause = .fixture(kind: StallReport.CauseKind(rawValue: "gremlins"))
            sink.take(.recovered(report))
            let labels = [("kind", "stall"), ("loop", "main"), ("cause", "unknown")]
            #expect(try metrics.expectCounter("stallwatch.stalls", labels).totalValue == 1)
            #expect(metrics.counters.count == 3)
        }
    }
#endif
