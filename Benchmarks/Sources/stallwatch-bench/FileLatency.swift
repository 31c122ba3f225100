import Foundation
import Measuring
import LinuxSupport
import StallWatch

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
            threshold: .fixed(.nanoseconds(Int(threshold))), reports: .directory(directory.path))
        configuration.reportsEveryRepeat = true
        configuration.maximumReportsPerMinute = 10_000
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
            return frame.line != nil && frame.file?.hasSuffix("FileLatency.swift") == true
        }
    }

    private static func names(in directory: URL) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).filter { $0.hasSuffix(".json") }
    }
}
