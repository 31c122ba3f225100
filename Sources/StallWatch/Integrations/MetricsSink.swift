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
        ///
        /// A stall is counted once: when it is over, or when the next process finds its report abandoned. Each metric
        /// is created on first use and then kept. The number of metrics is the number of watched loops, times the few
        /// kinds and causes.
        ///
        /// `cause` is a raw value of ``StallReport/CauseKind``. It is `unknown` for a stall without a cause, such as a
        /// saturation, and for causes of a later version, so no value comes from outside.
        ///
        /// - Parameter factory: The factory of the metrics; `nil` for the one that the app has bootstrapped.
        /// - Returns: The sink.
        public static func metrics(factory: (any MetricsFactory)? = nil) -> ReportSink {
            ReportSink { _, _ in
                SinkDescription(name: "stallwatch-met", interest: [.ended, .suppressed, .recovered]) {
                    MetricsSink(factory ?? MetricsSystem.factory)
                }
            }
        }
    }

    /// The sink that counts stalls in swift-metrics.
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
