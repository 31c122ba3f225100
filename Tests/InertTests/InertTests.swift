import CStallWatch
import Foundation
import InMemoryLogging
import Logging
import StallWatch
import StallWatchTesting
import Testing

/// The library as it is on platforms other than Linux: the same interface, without a monitor behind it.
struct InertTests {
    @Test func itSaysThatItDoesNothing() {
        #expect(!StallMonitor.isSupported)
    }

    @Test func startLogsOneLine() throws {
        let log = InMemoryLogHandler()
        let monitor = try StallMonitor(.init(outputs: [.log(Logger(label: "test") { _ in log })]))
        try monitor.watch(.main)
        try monitor.start()
        defer { monitor.stop() }
        #expect(log.entries.map(\.level) == [.notice])
        #expect(
            log.entries.map { "\($0.message)" } == [
                "StallWatch supports Linux only: on this platform no stalls are reported"
            ])
    }

    @Test func reportsAreNeitherMadeNorWritten() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "inert-\(UUID().uuidString)").path()
        let monitor = try StallMonitor(.init(threshold: .milliseconds(5), outputs: [.directory(directory)]))
        let probe = LoopProbe(label: "probe")
        try monitor.watch(.probe(probe))
        try monitor.start()
        let reports = monitor.makeReports()
        probe.beginTurn()
        stallwatch_begin_turn(probe.handle)
        monitor.withMonitoringPaused { Thread.sleep(forTimeInterval: 0.05) }
        stallwatch_end_turn(probe.handle)
        probe.endTurn()
        monitor.stop()
        var count = 0
        for await _ in reports { count += 1 }
        for await _ in monitor.makeReports() { count += 1 }
        #expect(count == 0)
        #expect(monitor.statistics.stalls == 0)
        #expect(monitor.statistics.loops.isEmpty)
        #expect(!FileManager.default.fileExists(atPath: directory))
    }

    @Test func healthIsUnknownAndNotWritten() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "inert-\(UUID().uuidString)").path()
        var configuration = StallMonitor.Configuration()
        configuration.health = .init(path: path)
        let monitor = try StallMonitor(configuration)
        try monitor.start()
        defer { monitor.stop() }
        #expect(monitor.checkHealth().state == .stopped)
        #expect(monitor.checkHealth().loops == [])
        #expect(!FileManager.default.fileExists(atPath: path))
        configuration.health = .init(path: path, interval: .milliseconds(1))
        #expect(throws: StallWatchError.self) { try StallMonitor(configuration) }
    }

    @Test func settingsAreCheckedAsOnLinux() throws {
        #expect(throws: StallWatchError.self) { try StallMonitor(.init(threshold: .milliseconds(1))) }
        let monitor = try StallMonitor()
        #expect(throws: StallWatchError.self) {
            try monitor.watch(.queue(.main, label: "queue"), threshold: .seconds(100_000))
        }
        try monitor.start()
        let second = #expect(throws: StallWatchError.self) { try monitor.start() }
        #expect(second?.code == .alreadyStarted)
        monitor.stop()
        let late = #expect(throws: StallWatchError.self) { try monitor.start() }
        #expect(late?.code == .stopped)
    }

    @Test(.noStalls(over: .milliseconds(10)), .hangDump(after: .milliseconds(10)))
    func aTestThatStallsPasses() async throws {
        let slept = expectNoStalls(over: .milliseconds(10)) {
            Thread.sleep(forTimeInterval: 0.05)
            return true
        }
        #expect(slept)
        await expectNoStalls(over: .milliseconds(10)) { await Task.yield() }
    }
}

/// Contexts where there are no reports.
@Suite struct ContextTests {
    @Test func `a context is the current one, and nothing else`() async {
        #expect(StallContext.current == nil)
        let inherited = withStallContext("import", ["a": "1"]) {
            #expect(StallContext.current?.label == "import" && StallContext.current?.attributes == ["a": "1"])
            return Task { StallContext.current?.label }
        }
        #expect(await inherited.value == "import")
        #expect(StallContext.current == nil)
        stallwatch_push_context("c", nil, nil)
        #expect(StallContext.current == nil)
        stallwatch_pop_context()
    }
}
