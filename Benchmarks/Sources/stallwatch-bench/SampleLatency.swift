import Dispatch
import Glibc
import Measuring
import StallWatch
import Synchronization

/// The time from the threshold to a stall's first sample, compared with the lateness of a thread that only sleeps until
/// the threshold.
enum SampleLatency {
    static let stalls = 1000
    /// The first stalls of a process, during which reading the symbols of every image keeps a processor busy.
    static let firstStalls = 20
    static let threshold = Duration.milliseconds(20)
    /// The pause between stalls in nanoseconds, long enough for the previous report.
    static let pause: UInt64 = 100_000_000

    static func table() throws -> Table {
        let samples = try sampling(pause: pause)
        let withoutPause = try sampling(pause: 0)
        let latencies = [
            ("StallWatch's sample", Samples(samples.later)),
            ("the same, when one stall comes right after another", Samples(withoutPause.later)),
            ("the same, of the first \(firstStalls) stalls of a process", Samples(withoutPause.first)),
            ("a thread that sleeps until then", Samples(sleeping())),
        ]
        return Table(
            title: "From the threshold to the first captured sample, \(stalls) stalls on CPU, threshold 20 ms",
            columns: ["what", "p50, ms", "p90, ms", "p99, ms", "most, ms", "p50 / threshold"],
            rows: latencies.map { name, latency in
                let values = [50, 90, 99, 100].map { latency.percentile($0).digits(2) }
                return [name] + values + [(latency.median / 20).digits(4)]
            }
        )
    }

    /// Measures the latencies of StallWatch, in milliseconds, with a pause of `pause` nanoseconds after each stall.
    private static func sampling(pause: UInt64) throws -> (first: [Double], later: [Double]) {
        let probe = LoopProbe(label: "measured")
        var configuration = StallMonitor.Configuration(threshold: threshold, reports: .none)
        // All stalls have the same fingerprint, and each is measured.
        configuration.reportsEveryRepeat = true
        configuration.maximumReportsPerMinute = 10_000
        let latencies = Mutex<[UInt64: Double]>([:])
        configuration.onStallEnded = { report in
            guard let first = report.samples.first, first.stack != nil else { return }
            let late = first.atMilliseconds - report.thresholdMilliseconds + first.captureMicroseconds / 1000
            latencies.withLock { $0[report.loop.turn] = late }
        }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        for _ in 0..<(firstStalls + stalls) {
            stall(probe)
            sleep(until: now() + pause)
        }
        // Delivers every report before it returns.
        monitor.stop()
        let all = latencies.withLock { $0 }
        let later = all.filter { $0.key > firstStalls }
        guard later.count == stalls else {
            throw CannotMeasure("\(later.count) of \(stalls) stalls were reported with a stack")
        }
        return (all.filter { $0.key <= firstStalls }.map(\.value), later.map(\.value))
    }

    /// Stalls on CPU, long enough for the sample.
    private static func stall(_ probe: LoopProbe) {
        probe.beginTurn()
        compute(until: now() + 30_000_000)
        probe.endTurn()
    }

    /// Sleeps until the given time of CLOCK_MONOTONIC, in nanoseconds.
    private static func sleep(until end: UInt64) {
        while now() < end {
            var time = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil)
        }
    }

    private static func compute(until end: UInt64) {
        while now() < end {}
    }

    /// Returns how late another thread wakes, in milliseconds, while this one is on CPU as in a stall.
    private static func sleeping() -> [Double] {
        let late = Mutex<[Double]>([])
        for _ in 0..<stalls {
            let due = now() + 20_000_000
            let woken = DispatchSemaphore(value: 0)
            startThread {
                sleep(until: due)
                let woke = now()
                late.withLock { $0.append(Double(woke - due) / 1e6) }
                woken.signal()
            }
            compute(until: due + 10_000_000)
            woken.wait()
        }
        return late.withLock { $0 }
    }
}
