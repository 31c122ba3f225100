import Dispatch
import StallWatch
import Synchronization

/// How long after a stall's turn went over the threshold its first sample is there.
enum SampleLatency {
    static let stalls = 200
    static let threshold = Duration.milliseconds(20)

    static func table() throws -> Table {
        let probe = LoopProbe(label: "measured")
        var configuration = StallMonitor.Configuration(threshold: threshold, reports: .none)
        // All stalls are the same one, and each is a measurement.
        configuration.reportsEveryRepeat = true
        configuration.maximumReportsPerMinute = 10_000
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        let latencies = Mutex<[Double]>([])
        let ended = DispatchSemaphore(value: 0)
        let reports = monitor.reports
        Task {
            for await report in reports {
                guard let first = report.samples.first, first.stack != nil else { continue }
                let late = first.atMilliseconds - report.thresholdMilliseconds + first.captureMicroseconds / 1000
                latencies.withLock { $0.append(late) }
            }
            ended.signal()
        }
        for _ in 0..<stalls {
            probe.beginTurn()
            // On CPU, and long enough for the sample.
            let end = now() + 30_000_000
            while now() < end {}
            probe.endTurn()
        }
        monitor.stop()
        ended.wait()
        let samples = latencies.withLock { $0 }
        guard samples.count == stalls else {
            throw CannotMeasure(description: "\(samples.count) of \(stalls) stalls were reported with a stack")
        }
        let latency = Samples(samples)
        return Table(
            title: "From the threshold to the first captured sample, \(stalls) stalls on CPU, threshold 20 ms",
            columns: ["p50, ms", "p99, ms", "p50 / threshold"],
            rows: [[latency.median.digits(2), latency.percentile(99).digits(2), (latency.median / 20).digits(4)]]
        )
    }
}
