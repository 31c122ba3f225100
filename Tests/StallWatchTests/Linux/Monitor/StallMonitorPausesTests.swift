import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// `StallMonitor.health`, and the health file of a monitor in this process.
@Suite(.serialized, .timeLimit(.minutes(10))) struct StallMonitorHealthTests {
    private let directory: TemporaryDirectory
    private let probe = LoopProbe(label: "probe")

    init() throws { directory = try TemporaryDirectory() }

    private func monitor(health: HealthOutput? = nil) throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(50), reports: .none)
        configuration.health = health
        return try StallMonitor(configuration)
    }

    private func fileRecord() -> HealthRecord? {
        AtomicFile.read(directory.path("health"), limit: 1 << 20).flatMap { HealthRecord(jsonData: $0) }
    }

    @Test func `a monitor without health settings answers, too`() throws {
        let monitor = try monitor()
        #expect(monitor.health.state == .stopped)
        try monitor.watch(.probe(probe))
        try monitor.start()
        #expect(eventually { monitor.health.loops.map(\.state) == [.starting] })
        #expect(monitor.health.state == .starting)
        probe.beginTurn()
        probe.endTurn()
        #expect(eventually { monitor.health.state == .ok })
        probe.beginTurn()
        #expect(eventually { monitor.health.state == .stalled })
        #expect(eventually { monitor.health.stall?.report != nil })
        #expect(monitor.health.summary.hasPrefix("probe stalled and has not come back after "))
        probe.endTurn()
        #expect(eventually { monitor.health.state == .ok })
        #expect(eventually { monitor.health.stall?.isOngoing == false })
        monitor.stop()
        #expect(monitor.health.state == .stopped)
        #expect(monitor.health.loops.map(\.label) == ["probe"])
    }

    @Test func `the file follows the loops and is left behind`() throws {
        let output = HealthOutput(path: directory.path("health"), interval: .milliseconds(100), notifiesSystemd: false)
        let monitor = try monitor(health: output)
        #expect(fileRecord() == nil)
        try monitor.watch(.probe(probe))
        try monitor.start()
        #expect(eventually { fileRecord()?.state == .starting })
        probe.beginTurn()
        probe.endTurn()
        #expect(eventually { fileRecord()?.state == .ok })
        probe.beginTurn()
        #expect(eventually { fileRecord()?.state == .stalled })
        let stalled = try #require(fileRecord())
        #expect(eventually { (fileRecord()?.checkedAt).map { $0 > stalled.checkedAt } ?? false })
        #expect(fileRecord()?.progressedAt == stalled.progressedAt, "the file's age grows during a stall")
        probe.endTurn()
        #expect(eventually { fileRecord()?.state == .ok })
        monitor.stop()
        #expect(fileRecord()?.state == .stopped)
        #expect(directory.names == ["health"])
    }

    @Test func `only one monitor of a process tells supervisors`() throws {
        let output = HealthOutput(path: directory.path("health"), notifiesSystemd: false)
        let first = try monitor(health: output)
        let second = try monitor(health: output)
        try first.start()
        let error = #expect(throws: StallWatchError.self) { try second.start() }
        #expect(error?.code == .invalidConfiguration)
        #expect(first.health.state == .starting, "the first one goes on")
        first.stop()
        let third = try monitor(health: output)
        try third.start()
        third.stop()
    }

    @Test func `a health file that cannot be written is refused`() {
        let error = #expect(throws: StallWatchError.self) {
            try monitor(health: HealthOutput(path: directory.path("no/health")))
        }
        #expect(error?.code == .unwritableReports)
    }
}
