import StallReports

#if Metrics
    import CoreMetrics

    final class MetricsSink: Sink {
        /// The most pairs of metrics of stalls, and loops with metrics, that are kept; what exceeds it has one label for all.
        ///
        /// An operation may be named after its request, and a loop after its job.
        static let maximumPairs = 1_000
        private static let other = "other"

        private let factory: any MetricsFactory
        private let lateness: Timer
        private let missed: Counter
        private let suppressed: [SuppressionReason: Counter]
        /// By the kind, the loop and the cause.
        private var stalls: [[String]: (counter: Counter, duration: Timer)] = [:]
        private var loops: [String: LoopMetrics] = [:]

        init(_ factory: any MetricsFactory) {
            self.factory = factory
            lateness = Timer(label: "stallwatch.watchdog.lateness", factory: factory)
            missed = Counter(label: "stallwatch.missed", factory: factory)
            suppressed = Dictionary(
                uniqueKeysWithValues: [SuppressionReason.repeated, .rateLimit].map { reason in
                    let dimensions = [("reason", reason.rawValue)]
                    return (reason, Counter(label: "stallwatch.suppressed", dimensions: dimensions, factory: factory))
                }
            )
        }

        func receive(_ delivery: Delivery) {
            for loop in delivery.interval {
                let hasRoom = loops[loop.label] != nil || loops.count < Self.maximumPairs
                let label = hasRoom ? loop.label : Self.other
                let metrics = loops[label] ?? LoopMetrics(loop: label, factory)
                loops[label] = metrics
                metrics.record(loop)
            }
            guard let report = delivery.report else { return }
            count(report, stalls: delivery.stalls)
            guard delivery.event != .recovered else { return }
            lateness.recordMilliseconds(report.monitor.watchdogLateMilliseconds)
            if let reason = delivery.reason { suppressed[reason]?.increment() }
        }

        private func count(_ report: StallReport, stalls number: Int) {
            var cause = report.causeWord
            if !StallReport.causeWords.contains(cause) { cause = StallReport.CauseKind.unknown.rawValue }
            var labels = [report.kind.rawValue, report.loop.label, cause]
            if stalls[labels] == nil, stalls.count >= Self.maximumPairs { labels[1] = Self.other }
            let dimensions = Array(zip(["kind", "loop", "cause"], labels))
            let metrics =
                stalls[labels] ?? (
                    Counter(label: "stallwatch.stalls", dimensions: dimensions, factory: factory),
                    Timer(label: "stallwatch.stall.duration", dimensions: dimensions, factory: factory)
                )
            stalls[labels] = metrics
            metrics.counter.increment(by: number)
            if report.missingSamplesReason != nil { missed.increment(by: number) }
            metrics.duration.recordMilliseconds(report.durationMilliseconds)
        }
    }

    /// The metrics of the loops with one label, named after those of OpenTelemetry for Node.js, in seconds
    /// (opentelemetry.io, Semantic conventions for Node.js runtime metrics).
    struct LoopMetrics {
        private let turns: Counter
        private let gauges: [String: Gauge]

        init(loop: String, _ factory: any MetricsFactory) {
            let dimensions = [("loop", loop)]
            turns = Counter(label: "stallwatch.eventloop.turns", dimensions: dimensions, factory: factory)
            let names = ["delay.mean", "delay.p50", "delay.p90", "delay.p99", "delay.max", "utilization", "threshold"]
            gauges = Dictionary(
                uniqueKeysWithValues: names.map {
                    ($0, Gauge(label: "stallwatch.eventloop.\($0)", dimensions: dimensions, factory: factory))
                })
        }

        /// Records an interval; one without turns leaves the delays as they are.
        func record(_ interval: LoopStatistics) {
            func delay(_ quantile: Double) -> Duration? {
                guard interval.turns > 0 else { return nil }
                return interval.turnDuration(quantile: quantile) ?? LatencyBucket.largestBound
            }
            let durations = [
                "delay.mean": interval.meanTurn, "delay.p50": delay(0.5), "delay.p90": delay(0.9),
                "delay.p99": delay(0.99), "delay.max": delay(1), "threshold": interval.threshold,
            ]
            for case (let name, let duration?) in durations { gauges[name]?.record(duration / .seconds(1)) }
            if let utilization = interval.utilization { gauges["utilization"]?.record(utilization) }
            turns.increment(by: Int64(clamping: interval.turns))
        }
    }
#endif
