import CUnwindTestSupport
import Foundation
import Glibc
import StallReports
import StallWatch
import Synchronization
import TestSupport
import Testing

/// A complete monitor on a loop whose turns the test controls.
@Suite(.serialized) struct ReportsMonitorTests {
    private let scratch: TemporaryDirectory
    private let loop = ProbedLoop()

    init() throws { scratch = try TemporaryDirectory() }

    private func monitor(_ change: (inout StallMonitor.Configuration) -> Void = { _ in }) throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(threshold: .milliseconds(30), reports: .directory(scratch.path))
        change(&configuration)
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(loop.probe))
        return monitor
    }

    @Test func successiveMonitorsReportStalls() throws {
        for count in 1...3 {
            let monitor = try monitor()
            try monitor.start()
            loop.turn { usleep(80_000) }
            monitor.stop()
            #expect(scratch.reportNames.count == count)
        }
    }

    @Test func hooksAreCalledForRepeatedStalls() throws {
        let began = Collected<StallReport>()
        let ended = Collected<StallReport>()
        let monitor = try monitor { configuration in
            configuration.onStallBegan = began.add
            configuration.onStallEnded = ended.add
        }
        try monitor.start()
        for number in 1...3 {
            loop.turn { usleep(80_000) }
            #expect(eventually { ended.all.count == number })
        }
        monitor.stop()
        #expect(began.all.map(\.id) == ended.all.map(\.id))
        #expect(began.all.map(\.state) == [.ongoing, .ongoing, .ongoing])
        #expect(ended.all.map(\.state) == [.ended, .ended, .ended])
        #expect(try scratch.reports().map(\.state) == [.ended, .ended], "the third stall repeats an earlier one")
        #expect(monitor.statistics.stalls == 3)
        #expect(monitor.statistics.suppressed[.repeated] == 1)
    }

    /// The thread responds neither to ptrace nor to a signal, so its stack can only be read.
    @Test func aStallInUninterruptibleSleepIsReported() throws {
        let monitor = try monitor()
        try monitor.start()
        let begun = monotonicNanoseconds()
        loop.turn { cunwind_test_sleep_in_vfork(300) }
        let taken = Double(monotonicNanoseconds() - begun) / 1_000_000
        monitor.stop()
        let report = try #require(try scratch.reports().first)
        #expect(report.state == .ended)
        #expect((300...taken).contains(report.durationMilliseconds), "\(report.durationMilliseconds) of \(taken) ms")
        let samples = report.samples.filter { $0.isValid }
        #expect(samples.reduce(0) { $0 + ($1.timesSeen ?? 1) } > 1)
        for sample in samples {
            #expect(sample.threadState == .uninterruptible)
            #expect(sample.method == .read)
            #expect(sample.isComplete)
        }
        #expect(report.culprit?.function == "cunwind_test_sleep_in_vfork")
    }

    @Test func aStallEscalatesOnceAndOnlyWhenItLasts() async throws {
        // The clock decides the age alone.
        let age = try await remeasured(escalate, until: escalationAges.contains)
        #expect(escalationAges.contains(age), "\(age) ms")
    }

    private var escalationAges: ClosedRange<Double> { 120...200 }

    /// Makes a short and a long stall, and returns the age of the long one at its escalation, in milliseconds.
    private func escalate() throws -> Double {
        let escalated = Collected<StallReport>()
        let monitor = try monitor { configuration in
            configuration.escalation = .call(after: 4, escalated.add)
            // Symbolication takes 200 ms for a first report and would delay the call, which then has the latest state.
            configuration.symbolication.detail = .none
        }
        try monitor.start()
        loop.turn { usleep(60_000) }
        loop.turn { usleep(400_000) }
        monitor.stop()
        #expect(escalated.all.count == 1)
        #expect(monitor.statistics.stalls == 2)
        return try #require(escalated.all.first?.durationMilliseconds)
    }

    @Test func aSinkMayStopTheMonitor() throws {
        let box = Mutex<StallMonitor?>(nil)
        let stopped = Atomic<Bool>(false)
        let other = Collected<StallReport>()
        let monitor = try monitor { configuration in
            configuration.sinks = [
                .closure { _ in
                    box.withLock { $0 }?.stop()
                    stopped.store(true, ordering: .releasing)
                },
                .closure(other.add),
            ]
        }
        box.withLock { $0 = monitor }
        try monitor.start()
        let begun = monotonicNanoseconds()
        loop.turn { usleep(80_000) }
        #expect(eventually { stopped.load(ordering: .acquiring) })
        #expect(monotonicNanoseconds() - begun < 1_000_000_000, "stop() did not wait for the sink that called it")
        #expect(other.all.count == 1)
        #expect(try scratch.reports().map(\.state) == [.ended])
        box.withLock { $0 = nil }
    }

    @Test func stopWaitsABoundedTimeForAStuckSink() throws {
        let never = DispatchSemaphore(value: 0)
        let monitor = try monitor { $0.sinks = [.closure { _ in never.wait() }] }
        try monitor.start()
        loop.turn { usleep(80_000) }
        #expect(eventually { scratch.reportNames.count == 1 })
        let begun = monotonicNanoseconds()
        monitor.stop()
        let taken = monotonicNanoseconds() - begun
        #expect((900_000_000...2_500_000_000).contains(taken), "\(taken) ns")
        never.signal()
    }

    @Test func stopAbandonsAnOngoingStall() throws {
        let monitor = try monitor()
        try monitor.start()
        loop.turn {
            usleep(150_000)
            monitor.stop()
        }
        let report = try #require(try scratch.reports().first)
        #expect(report.state == .abandoned)
        #expect(report.durationMilliseconds >= 145)
        #expect(monitor.statistics.stalls == 1)
    }

    @Test func statisticsCountEveryTurn() throws {
        let path = scratch.path + "/statistics.json"
        let monitor = try monitor { $0.statisticsPath = path }
        try monitor.start()
        for _ in 0..<1_000 { loop.turn {} }
        loop.turn { usleep(100_000) }
        usleep(50_000)
        monitor.stop()
        let statistics = monitor.statistics
        let probe = try #require(statistics.loops.first)
        #expect(statistics.loops.count == 1)
        #expect(probe.label == "probe")
        #expect(probe.turns == 1_001)
        #expect(probe.stalls == 1)
        #expect(probe.latency.reduce(0) { $0 + $1.turns } == 1_001)
        #expect((0.1...0.5).contains(probe.busySeconds))
        #expect((0.1...0.5).contains(probe.stallSeconds))
        #expect(abs(probe.stallsPerHour - 3_600 / probe.watchedSeconds) < 1)
        let median = try #require(probe.latencyMicroseconds(quantile: 0.5))
        #expect(median < 1_000)
        let longest = try #require(probe.latencyMicroseconds(quantile: 1))
        #expect((100_000...500_000).contains(longest))
        let json =
            try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path))) as? [String: Any]
        #expect(json?["stalls"] as? Int == 1)
        #expect((json?["loops"] as? [[String: Any]])?.first?["turns"] as? Int == 1_001)
    }

    @Test func noArgumentsEnvironmentOrMemoryAreInAReport() throws {
        let secret = "hunter2-" + String(repeating: "x", count: 8)
        setenv("STALLWATCH_TEST_SECRET", secret, 1)
        defer { unsetenv("STALLWATCH_TEST_SECRET") }
        let monitor = try monitor()
        try monitor.start()
        loop.turn { withExtendedLifetime(secret) { _ = usleep(80_000) } }
        monitor.stop()
        let text = String(decoding: try #require(try scratch.reports().first).jsonData(), as: UTF8.self)
        #expect(!text.contains("hunter2"))
        for argument in CommandLine.arguments.dropFirst() where argument.count > 6 { #expect(!text.contains(argument)) }
    }
}
