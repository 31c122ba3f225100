import LinuxSupport
import StallReports

#if Metrics
    public import CoreMetrics

    extension ReportSink {
        /// Returns a sink that counts every stall in swift-metrics, reported or not.
        ///
        /// | metric | type | dimensions |
        /// | --- | --- | --- |
        /// | `stallwatch.stalls` | counter | `kind`, `loop`, `cause` |
        /// | `stallwatch.stall.duration` | timer | `kind`, `loop`, `cause` |
        /// | `stallwatch.watchdog.lateness` | timer | |
        /// | `stallwatch.suppressed` | counter | `reason`: `repeated` or `rateLimit` |
        /// | `stallwatch.eventloop.turns` | counter | `loop` |
        /// | `stallwatch.eventloop.delay.mean`, `.p50`, `.p90`, `.p99`, `.max` | gauge, seconds | `loop` |
        /// | `stallwatch.eventloop.utilization` | gauge, 0 to 1 | `loop` |
        /// | `stallwatch.eventloop.threshold` | gauge, seconds | `loop` |
        ///
        /// The names after `eventloop` are those of OpenTelemetry for Node.js. They describe the turns of an interval: of a
        /// run loop or a probe their durations, of other loops the times until heartbeats have run, which are sent only to a
        /// loop that has work. Utilization is that of loops that report their turns. An interval ends when the watchdog next
        /// polls the loops: a process without work is not woken, and its gauges keep their values until it has work again.
        ///
        /// A stall is counted once: when it is over, or when the next process finds its report abandoned. Each metric
        /// is created on first use and then kept. The number of metrics is the number of watched loops, times the few
        /// kinds and causes.
        ///
        /// `cause` is a raw value of ``StallReport/CauseKind``. It is `unknown` for a stall without a cause, such as a
        /// saturation, and for causes of a later version, so no value comes from outside.
        ///
        /// - Parameters:
        ///   - factory: The factory of the metrics; `nil` for the one that the app has bootstrapped.
        ///   - interval: The least length of an interval: 1 second to 1 hour. Otherwise ``StallMonitor/init(_:)`` throws.
        /// - Returns: The sink.
        public static func metrics(
            factory: (any MetricsFactory)? = nil, every interval: Duration = .seconds(60)
        ) -> ReportSink {
            ReportSink { _, _ throws(StallWatchError) in
                guard (.seconds(1)...(.seconds(3_600))).contains(interval) else {
                    throw StallWatchError(
                        .invalidConfiguration,
                        "the interval of the metrics is \(interval): give a value from 1 second to 1 hour"
                    )
                }
                return SinkDescription(
                    name: "stallwatch-met", interest: [.ended, .suppressed, .recovered, .interval],
                    intervalLength: nanoseconds(interval)
                ) {
                    MetricsSink(factory ?? MetricsSystem.factory)
                }
            }
        }
    }

    final class MetricsSink: Sink {
        private struct Labels: Hashable {
            var kind: String
            var loop: String
            var cause: String
        }

        private let factory: any MetricsFactory
        private let lateness: Timer
        private let suppressed: [SuppressionReason: Counter]
        private var stalls: [Labels: (counter: Counter, duration: Timer)] = [:]
        private var loops: [String: LoopMetrics] = [:]

        init(_ factory: any MetricsFactory) {
            self.factory = factory
            lateness = Timer(label: "stallwatch.watchdog.lateness", factory: factory)
            suppressed = Dictionary(
                uniqueKeysWithValues: [SuppressionReason.repeated, .rateLimit].map { reason in
                    let dimensions = [("reason", reason.rawValue)]
                    return (reason, Counter(label: "stallwatch.suppressed", dimensions: dimensions, factory: factory))
                }
            )
        }

        func take(_ delivery: Delivery) {
            switch delivery {
            case .ended(let report, let reason):
                count(report)
                lateness.recordMilliseconds(report.monitor.watchdogLateMilliseconds)
                if let reason { suppressed[reason]?.increment() }
            case .recovered(let report):
                count(report)
            case .interval(let interval):
                for loop in interval {
                    let metrics = loops[loop.label] ?? LoopMetrics(loop: loop.label, factory)
                    loops[loop.label] = metrics
                    metrics.record(loop)
                }
            default:
                break
            }
        }

        private func count(_ report: StallReport) {
            let labels = Labels(
                kind: report.kind.rawValue, loop: report.loop.label, cause: Self.label(of: report.cause?.kind)
            )
            let metrics = stalls[labels] ?? make(labels)
            stalls[labels] = metrics
            metrics.counter.increment()
            metrics.duration.recordMilliseconds(report.durationMilliseconds)
        }

        private static func label(of cause: StallReport.CauseKind?) -> String {
            guard let cause, StallReport.CauseKind.known.contains(cause) else {
                return StallReport.CauseKind.unknown.rawValue
            }
            return cause.rawValue
        }

        private func make(_ labels: Labels) -> (counter: Counter, duration: Timer) {
            let dimensions = [("kind", labels.kind), ("loop", labels.loop), ("cause", labels.cause)]
            return (
                Counter(label: "stallwatch.stalls", dimensions: dimensions, factory: factory),
                Timer(label: "stallwatch.stall.duration", dimensions: dimensions, factory: factory)
            )
        }
    }
#endif

#if Metrics
    /// The metrics of the loops with one label.
    ///
    /// The names are those of OpenTelemetry for Node.js after `nodejs`, with seconds as their unit
    /// (opentelemetry.io, Semantic conventions for Node.js runtime metrics).
    struct LoopMetrics {
        private let turns: Counter
        /// The gauges by their names after `eventloop`.
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
        func record(_ interval: LoopInterval) {
            let delay = interval.delay
            let values = [
                "delay.mean": delay?.mean, "delay.p50": delay?.p50, "delay.p90": delay?.p90, "delay.p99": delay?.p99,
                "delay.max": delay?.longest, "utilization": interval.utilization, "threshold": interval.threshold,
            ]
            turns.increment(by: Int64(clamping: interval.turns))
            for case (let name, let value?) in values { gauges[name]?.record(value) }
        }
    }
#endif
