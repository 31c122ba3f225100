import Foundation
import LinuxSupport
import StallReports
import StallWatch
import TestSupport
import Testing

@testable import stallwatch_demo

/// A watchdog that sleeps while loops without observers have no work.
@Suite(.serialized) struct RestTests {
    private static let threshold = Duration.milliseconds(250)

    #if NIO
        @Test func `idle event loops and queues cause no wake-up, and their stalls are found`() async throws {
            let steal = CPUSteal()
            try await withDirectory { directory in
                let child = try DemoProgram.start(
                    .resting, threshold: Self.threshold, directory: directory, stall: .milliseconds(600))
                // The event loops' places are learned with three heartbeats, and unfollowed workers end after 5 s.
                try await Task.sleep(for: .seconds(7))
                let names = ["stallwatch-dog", "stallwatch-evt"]
                let before = child.wakeUps { names.contains($0) || $0.hasPrefix("NIO-ELT") }
                try await Task.sleep(for: .seconds(5))
                let after = child.wakeUps { names.contains($0) || $0.hasPrefix("NIO-ELT") }
                #expect(before.count == 6, "the watchdog, its helper and four event loops: \(before)")
                print("wake-ups of idle loops in 5 s: \(after.map { "\($0.key) \($0.value - (before[$0.key] ?? 0))" })")
                steal.excuses { #expect(before == after) }
                // A queue, an event loop, and a queue that a thread occupies which nothing follows.
                for request in ["q", "n", "t"] {
                    child.send(request)
                    try await Task.sleep(for: .milliseconds(1_500))
                }
                let result = try #require(try await child.result())
                #expect(result.injectedMilliseconds.count == 3)
                #expect(result.files.count == 3, "\(result)")
                let loops = try result.files.map { file in
                    try StallReport(jsonData: [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(file)"))))
                }
                #expect(loops.map(\.loop.label).sorted() == ["nio", "queue-0", "queue-1"])
                for report in loops {
                    // At most half a threshold, plus the time to wake up.
                    let uncertainty = try #require(report.startUncertaintyMilliseconds)
                    steal.excuses { #expect(uncertainty < 250, "\(report.loop.label)") }
                }
            }
        }
    #endif

    /// While the watchdog sleeps until the queue's next look, a turn of the other loop has to wake it.
    @Test func `a short threshold counts beside a long one`() throws {
        let monitor = try StallMonitor(.init(reports: .none))
        let probe = LoopProbe(label: "short")
        try monitor.watch(.probe(probe, threshold: .milliseconds(50)))
        try monitor.watch(.queue(DispatchQueue(label: "long"), label: "long", threshold: .seconds(60)))
        try monitor.start()
        defer { monitor.stop() }
        usleep(500_000)
        for _ in 0..<3 {
            probe.beginTurn()
            usleep(150_000)
            probe.endTurn()
            usleep(300_000)
        }
        #expect(eventually(within: 5) { monitor.statistics.stalls == 3 }, "\(monitor.statistics.stalls)")
    }
}
