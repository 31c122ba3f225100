import Foundation
import StallReports
import StallWatch
import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport

/// What led to a stall, on real loops.
@Suite(.serialized) struct HistoryTests {
    private final class Received: Sendable {
        let reports = Mutex<[StallReport]>([])
    }

    /// Twelve turns of 40 ms in the second before a stall, while another loop is in a turn of its own.
    @Test func congestionBeforeAStallIsInItsReport() throws {
        let received = Received()
        let monitor = try StallMonitor(
            .init(
                threshold: .milliseconds(200), reports: .none,
                sinks: [.closure { report in received.reports.withLock { $0.append(report) } }]))
        let loop = ProbedLoop()
        let other = LoopProbe(label: "other")
        try monitor.watch(.probe(loop.probe))
        try monitor.watch(.probe(other))
        try monitor.start()
        defer { monitor.stop() }
        let worker = try WorkerThread(name: "other") {
            other.beginTurn()
            Thread.sleep(forTimeInterval: 0.15)
            other.endTurn()
        }
        for _ in 0..<12 {
            loop.turn { Thread.sleep(forTimeInterval: 0.04) }
            Thread.sleep(forTimeInterval: 0.03)
        }
        worker.join()
        loop.turn { Thread.sleep(forTimeInterval: 0.3) }
        let isThere = eventually {
            received.reports.withLock { $0.contains { $0.loop.label == "probe" } }
        }
        #expect(isThere)
        let report = try #require(received.reports.withLock { $0.last { $0.loop.label == "probe" } })
        let history = try #require(report.history)
        #expect(history.loops.map(\.label) == ["probe", "other"])
        let turns = try #require(history.loops.first?.turns)
        #expect(turns.count == 12)
        #expect(turns.allSatisfy { $0.durationMilliseconds >= 40 && $0.isOngoing == nil })
        #expect(turns.dropFirst().allSatisfy { $0.waitedMilliseconds >= 30 })
        #expect(turns.allSatisfy { $0.atMilliseconds < 0 })
        #expect(history.loops.last?.turns.map { $0.durationMilliseconds >= 150 } == [true])
    }
}
