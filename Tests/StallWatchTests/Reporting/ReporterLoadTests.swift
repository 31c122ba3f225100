import Glibc
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// Reports 10,000 stalls to all sinks, in a separate process so that its memory can be measured.
@Suite struct ReporterLoadTests {
    @Test func tenThousandStallsOf50Fingerprints() async {
        await #expect(processExitsWith: .success) {
            let scratch = try TemporaryDirectory()
            let quota = ReportQuota(reports: 100, bytes: 1 << 20)
            let ended = Atomic<Int>(0)
            let told = Atomic<Int>(0)
            var settings = Reporter.Settings.fixture()
            settings.reportsPerMinute = 10_000
            var resident: [Double] = []
            var largest = 0
            let hooks = HookSink.Hooks(ended: { _ in ended.add(1, ordering: .releasing) })
            let sinks: [ReportSink] = [
                .directory(scratch.path, quota: quota), .hooks(hooks),
                .closure { report in told.add(1 + report.repeats, ordering: .relaxed) },
            ]
            let statistics = try withReporter(sinks, settings: settings) { reporter in
                // Each stall makes two deliveries per sink. A queue holds more than 50 deliveries, so none may be lost,
                // even if a sink's thread gets no CPU.
                for batch in 0..<400 {
                    for number in 0..<25 {
                        let record = StallRecord.fixture(function: (batch * 25 + number) % 50, state: .ongoing)
                        reporter.submit(record)
                        reporter.submit(record.after(milliseconds: 300))
                    }
                    guard eventually({ ended.load(ordering: .acquiring) == (batch + 1) * 25 }) else { Glibc.exit(2) }
                    largest = max(largest, scratch.names.filter(StallReport.isFileName).count)
                    resident.append(residentKilobytes())
                }
            }
            guard statistics.stalls == 10_000 else { Glibc.exit(3) }
            // Occurrences 1, 2, 4, … 128 of 200 per fingerprint.
            guard statistics.suppressed[.repeated] == 10_000 - 50 * 8 else { Glibc.exit(4) }
            guard statistics.suppressed[.rateLimit] == 0, statistics.reportsLost == 0 else { Glibc.exit(5) }
            guard told.load(ordering: .relaxed) == 50 * 128 else { Glibc.exit(6) }
            guard largest <= quota.reports else { Glibc.exit(7) }
            guard try scratch.reports().reduce(0, { $0 + $1.jsonData().count }) <= quota.bytes else { Glibc.exit(8) }
            // Reports on disk plus removed reports are all that were kept; an ongoing repeat may have evicted one more.
            let kept = scratch.names.count
            guard kept <= 100, statistics.reportsRemoved >= 300 else { Glibc.exit(9) }
            // The memory growth over the last half: the slope times its length.
            let half = Array(resident.suffix(200))
            let growth = slope(half) * Double(half.count)
            guard growth < 1_024 else {
                print("memory grew by \(growth) kB over the last 5,000 stalls")
                Glibc.exit(10)
            }
        }
    }
}

/// VmRSS of this process (proc(5)).
private func residentKilobytes() -> Double {
    let status = readSmallFile("/proc/self/status") ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS") }
    return line.flatMap { Double($0.filter(\.isNumber)) } ?? 0
}

/// The slope of the straight line through equally spaced values (least squares).
private func slope(_ values: [Double]) -> Double {
    let middle = Double(values.count - 1) / 2
    let mean = values.reduce(0, +) / Double(values.count)
    var covariance = 0.0
    var variance = 0.0
    for (index, value) in values.enumerated() {
        covariance += (Double(index) - middle) * (value - mean)
        variance += (Double(index) - middle) * (Double(index) - middle)
    }
    return covariance / variance
}
