import Dispatch
import Foundation
import Glibc
import LinuxSupport
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

    /// The threads that compute beside the stalled one in the second table.
    static let busyThreads = 2

    static func table() throws -> Table {
        let samples = try sampling(pause: pause)
        let withoutPause = try sampling(pause: 0)
        return table(
            title: "From the threshold to the first captured sample, \(stalls) stalls on CPU, threshold 20 ms",
            [
                ("StallWatch's sample", samples.later),
                ("the same, when one stall comes right after another", withoutPause.later),
                ("the same, of the first \(firstStalls) stalls of a process", samples.first),
                ("the stalls without a monitor", unwatched(pause: pause)),
                ("the same, one right after another", unwatched(pause: 0)),
                ("a thread that sleeps until then", sleeping().map { .init(late: $0, held: nil) }),
            ]
        )
    }

    /// The same beside threads that compute, with the time for which each stop held the stalled thread.
    static func busyTable() throws -> Table {
        let load = BusyThreads(busyThreads)
        defer { load.stop() }
        return table(
            title: "The same beside \(busyThreads) threads that compute",
            [
                ("StallWatch's sample", try sampling(pause: pause).later),
                ("the stalls without a monitor", unwatched(pause: pause)),
                ("a thread that sleeps until then", sleeping().map { .init(late: $0, held: nil) }),
            ]
        )
    }

    /// What is known of a stall's first sample, in milliseconds; `late` is `nil` if it has no stack.
    ///
    /// `paused` is the longest time for which the stalled thread did not run, by its own clock: it includes what the hold does
    /// not, as when the watchdog or the reporter ran on its processor.
    private struct Sampled {
        var late: Double?
        var held: Double?
        var paused: Double?
    }

    private static func table(title: String, _ rows: [(String, [Sampled])]) -> Table {
        Table(
            title: title,
            columns: [
                "what", "with a stack", "p50, ms", "p90, ms", "p99, ms", "most, ms", "held p50, ms", "held p99, ms",
                "held most, ms", "paused p50, ms", "paused p99, ms",
            ],
            rows: rows.map { name, samples in
                let late = samples.compactMap(\.late)
                let held = samples.compactMap(\.held)
                let paused = samples.compactMap(\.paused)
                let lateness = [50, 90, 99, 100].map { late.isEmpty ? "" : Samples(late).percentile($0).digits(2) }
                let holding = [50, 99, 100].map { held.isEmpty ? "" : Samples(held).percentile($0).digits(3) }
                let pauses = [50, 99].map { paused.isEmpty ? "" : Samples(paused).percentile($0).digits(2) }
                let stacks = late.isEmpty ? "" : "\(late.count) of \(samples.count)"
                return [name, stacks] + lateness + holding + pauses
            }
        )
    }

    /// Measures the first samples of StallWatch, with a pause of `pause` nanoseconds after each stall.
    private static func sampling(pause: UInt64) throws -> (first: [Sampled], later: [Sampled]) {
        let probe = LoopProbe(label: "measured")
        var configuration = StallMonitor.Configuration(threshold: threshold, outputs: [])
        // All stalls have the same fingerprint, and each is measured.
        configuration.repeats.reportsEveryRepeat = true
        configuration.repeats.maximumReportsPerMinute = 10_000
        let samples = Mutex<[UInt64: Sampled]>([:])
        configuration.onEvent = { event in
            guard case .ended(let report) = event, let first = report.samples.first(where: { $0.stack != nil }) else {
                return
            }
            // When the stack was copied.
            let late = first.atMilliseconds - report.thresholdMilliseconds
            samples.withLock { $0[report.loop.turn] = .init(late: late, held: first.heldMicroseconds / 1000) }
        }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        var pauses: [Double] = []
        for _ in 0..<(firstStalls + stalls) {
            pauses.append(stall(probe))
            sleep(until: now() + pause)
        }
        // Delivers every report before it returns.
        monitor.stop()
        let all = samples.withLock { $0 }
        let turns = zip(UInt64(1)..., pauses).map { turn, paused in
            var sampled = all[turn] ?? Sampled()
            sampled.paused = paused
            return sampled
        }
        return (Array(turns.prefix(firstStalls)), Array(turns.dropFirst(firstStalls)))
    }

    /// Stalls that no monitor watches: the control of the pauses.
    private static func unwatched(pause: UInt64) -> [Sampled] {
        let probe = LoopProbe(label: "unwatched")
        return (0..<stalls).map { _ in
            defer { sleep(until: now() + pause) }
            return Sampled(paused: stall(probe))
        }
    }

    /// Stalls on CPU, long enough for the sample; returns the thread's longest pause, in milliseconds.
    private static func stall(_ probe: LoopProbe) -> Double {
        probe.beginTurn()
        defer { probe.endTurn() }
        return Double(compute(until: now() + 30_000_000)) / 1e6
    }

    /// Sleeps until the given time of CLOCK_MONOTONIC, in nanoseconds.
    private static func sleep(until end: UInt64) {
        while now() < end {
            var time = timespec(tv_sec: Int(end / 1_000_000_000), tv_nsec: Int(end % 1_000_000_000))
            clock_nanosleep(CLOCK_MONOTONIC, Int32(TIMER_ABSTIME), &time, nil)
        }
    }

    /// Computes, and returns the longest time between two readings of the clock, in nanoseconds.
    @discardableResult
    private static func compute(until end: UInt64) -> UInt64 {
        var (last, longest) = (now(), UInt64(0))
        while last < end {
            let next = now()
            longest = max(longest, next - last)
            last = next
        }
        return longest
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

/// The time from the threshold until a file with the names and lines of the stalled thread's stack can be read.
enum FileLatency {
    static let stalls = 50
    static let threshold: UInt64 = 50_000_000
    /// The timeout.
    static let timeout: UInt64 = 5_000_000_000

    static func table() throws -> Table {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("stallwatch-bench-\(getpid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        var configuration = StallMonitor.Configuration(
            threshold: .nanoseconds(Int(threshold)), outputs: [.directory(directory.path)])
        configuration.repeats.reportsEveryRepeat = true
        configuration.repeats.maximumReportsPerMinute = 10_000
        let probe = LoopProbe(label: "measured")
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        defer { monitor.stop() }
        // The first report reads the symbols of every image of the stack.
        let cold = try stall(probe, directory)
        let warm = Samples(try (0..<stalls).map { _ in try stall(probe, directory) })
        return Table(
            title: "From the threshold to a file with names and lines, threshold \(threshold / 1_000_000) ms",
            columns: ["when", "p50, ms", "p99, ms"],
            rows: [
                ["the first stall of the process", cold.digits(1), ""],
                ["warm, \(stalls) stalls", warm.median.digits(1), warm.percentile(99).digits(1)],
            ]
        )
    }

    /// Returns the milliseconds from the threshold of one stall, which lasts until its file can be read.
    private static func stall(_ probe: LoopProbe, _ directory: URL) throws -> Double {
        let known = Set(names(in: directory))
        let began = now()
        probe.beginTurn()
        defer { probe.endTurn() }
        // The stalled thread itself polls for the file, only twice a millisecond, to leave the CPU to the other threads.
        while now() < began + timeout {
            usleep(500)
            guard now() >= began + threshold else { continue }
            for name in names(in: directory) where !known.contains(name) {
                guard let data = try? Data(contentsOf: directory.appendingPathComponent(name)),
                    let report = try? StallReport(jsonData: Array(data)), isReadable(report)
                else { continue }
                return Double(now() - began - threshold) / 1e6
            }
        }
        throw CannotMeasure("no file with names and lines came")
    }

    /// Whether the stack contains the function and line of this file.
    private static func isReadable(_ report: StallReport) -> Bool {
        guard let stack = report.samples.first?.stack else { return false }
        return report.stacks[stack].contains { index in
            let frame = report.frames[index]
            return frame.line != nil && frame.file?.hasSuffix("/Latency.swift") == true
        }
    }

    private static func names(in directory: URL) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).filter { $0.hasSuffix(".json") }
    }
}
