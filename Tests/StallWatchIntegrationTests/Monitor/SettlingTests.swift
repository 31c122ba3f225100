import LinuxSupport
import StallWatch
import Synchronization
import Testing

/// What ``StallMonitor/settle(_:until:)`` promises to code that needs each report at once.
@Suite(.serialized) struct SettlingTests {
    private final class Received: Sendable {
        let labels = Mutex<[String]>([])
        let began = Semaphore()
    }

    private let received = Received()
    private let probe = LoopProbe(label: "settled")

    private func monitor() throws -> StallMonitor {
        var configuration = StallMonitor.Configuration(
            threshold: .milliseconds(20), reports: .none,
            sinks: [.closure { [received] report in received.labels.withLock { $0.append(report.loop.label) } }])
        configuration.reportsEveryRepeat = true
        configuration.onStallBegan = { [received] _ in received.began.post() }
        let monitor = try StallMonitor(configuration)
        try monitor.watch(.probe(probe))
        try monitor.start()
        return monitor
    }

    /// Begins a turn and returns once it is known as a stall.
    private func stall() throws {
        probe.beginTurn()
        try #require(received.began.wait(until: monotonicNow() + 10_000_000_000))
    }

    private func settle(_ monitor: StallMonitor, within milliseconds: UInt64 = 10_000) -> Bool {
        monitor.settle(["settled"], until: monotonicNow() + milliseconds * 1_000_000)
    }

    @Test func `the sinks have every stall that is over`() throws {
        let monitor = try monitor()
        defer { monitor.stop() }
        #expect(settle(monitor))
        for count in 1...5 {
            try stall()
            probe.endTurn()
            #expect(settle(monitor))
            #expect(received.labels.withLock { $0.count } == count)
        }
    }

    @Test func `a stall that goes on is waited for until the deadline`() throws {
        let monitor = try monitor()
        defer { monitor.stop() }
        try stall()
        #expect(!settle(monitor, within: 50))
        #expect(received.labels.withLock { $0.isEmpty })
        probe.endTurn()
        #expect(settle(monitor))
        #expect(received.labels.withLock { $0 } == ["settled"])
    }
}
