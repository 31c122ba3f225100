#if Metrics
    import CoreMetrics

    /// The metrics of the loops with one label.
    ///
    /// The names are those of OpenTelemetry for Node.js after `nodejs`, with seconds as their unit
    /// (opentelemetry.io, Semantic conventions for Node.js runtime metrics).
    struct LoopMetrics {
        private let turns: Counter
        private let mean: Gauge
        private let p50: Gauge
        private let p90: Gauge
        private let p99: Gauge
        private let longest: Gauge
        private let utilization: Gauge
        private let threshold: Gauge

        init(loop: String, _ factory: any MetricsFactory) {
            let dimensions = [("loop", loop)]
            func gauge(_ name: String) -> Gauge {
                Gauge(label: "stallwatch.eventloop.\(name)", dimensions: dimensions, factory: factory)
            }
            turns = Counter(label: "stallwatch.eventloop.turns", dimensions: dimensions, factory: factory)
            mean = gauge("delay.mean")
            p50 = gauge("delay.p50")
            p90 = gauge("delay.p90")
            p99 = gauge("delay.p99")
            longest = gauge("delay.max")
            utilization = gauge("utilization")
            threshold = gauge("threshold")
        }

        /// Records an interval.
        ///
        /// An interval without turns leaves the delays as they are.
        func record(_ interval: LoopInterval) {
            turns.increment(by: Int64(clamping: interval.turns))
            threshold.record(interval.threshold)
            if let part = interval.utilization { utilization.record(part) }
            guard let delay = interval.delay else { return }
            mean.record(delay.mean)
            p50.record(delay.p50)
            p90.record(delay.p90)
            p99.record(delay.p99)
            longest.record(delay.longest)
        }
    }
#endif
