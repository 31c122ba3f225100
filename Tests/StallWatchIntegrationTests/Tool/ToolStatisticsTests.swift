import StallWatch
import TestSupport
import Testing

@testable import StallWatchCLI

/// The tool reads the statistics that a monitor writes.
@Suite struct ToolStatisticsTests {
    @Test func statisticsOfAMonitorAreRead() throws {
        let scratch = try TemporaryDirectory()
        let path = scratch.path + "/statistics.json"
        var configuration = StallMonitor.Configuration(reports: .directory(scratch.path + "/stalls"))
        configuration.statisticsPath = path
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        monitor.stop()
        let sum = try StatisticsFile.sum(of: [path])
        #expect(sum.files == 1)
        #expect(sum.suppressed.keys.contains("repeated"))
        #expect(sum.loops.isEmpty)
    }
}
