import Foundation
import LinuxSupport
import StallReports
import StallWatch
import TestSupport
import Testing

@testable import stallwatch_scenarios

/// A watchdog that sleeps while loops without observers have no work.
@Suite(.serialized) struct RestTests {
    private static let threshold = Duration.milliseconds(250)

    #if NIO
        /// A program whose loops rest, and who in it has woken up meanwhile.
        struct Rest: Sendable {
            let directory: TemporaryDirectory
            let wakeUps: [String: Int]
            let passed: Duration
            /// What the program says of its stalls afterwards.
            let result: HostResult?
        }

        static let steal = CPUSteal()

        /// Measured beside the tests from ``DetectionTests`` on: it needs no CPU for long.
        static let rest: Task<Rest, any Error> = Task {
            let directory = try TemporaryDirectory()
            let child = try ChildProcess(
                .resting, threshold: threshold, directory: directory.path, stall: .milliseconds(600),
                executable: Command.product("stallwatch-scenarios"))
            await child.waitForMonitor(within: .seconds(600))
            // The event loops' places are learned with three heartbeats, and idle workers end after 5 s.
            try await Task.sleep(for: .seconds(7))
            // They run on time three times in a row only with a CPU: what wakes a loop once in 5 s is always found.
            var attempt = 0
            while true {
                attempt += 1
                let (began, before) = (ContinuousClock.now, child.wakeUps { _ in true })
                try await Task.sleep(for: .seconds(5))
                var wakeUps = child.wakeUps { _ in true }
                let passed = ContinuousClock.now - began
                for (name, count) in before { wakeUps[name, default: count] -= count }
                let isIdle = wakeUps.allSatisfy { !$0.key.hasPrefix("NIO-ELT") || $0.value == 0 }
                guard !isIdle, attempt < maximumWindows else {
                    // A queue, an event loop, and a queue that a thread occupies four times, which nothing follows.
                    for request in ["q", "n", "t"] { child.send(request) }
                    return Rest(
                        directory: directory, wakeUps: wakeUps, passed: passed, result: try await child.result())
                }
            }
        }
        private static let maximumWindows = 6

        @Test func `idle loops are not woken, and their stalls are found`() async throws {
            let steal = Self.steal
            let rest = try await Self.rest.value
            let wakeUps = rest.wakeUps
            print("wake-ups of idle loops in 5 s: \(wakeUps.filter { $0.value > 0 })")
            let dog = wakeUps.filter { $0.key.hasPrefix("stallwatch-dog ") }
            let loops = wakeUps.filter { $0.key.hasPrefix("NIO-ELT") }
            #expect(loops.count == 4)
            // libdispatch wakes one of its threads once per second, to count the others.
            let others = wakeUps.filter { !$0.key.hasPrefix("stallwatch-") && loops[$0.key] == nil }
            let watched = dog.values.reduce(0, +)
            let woken = others.values.reduce(0, +)
            steal.excuses {
                #expect(Double(watched) <= 2 * (rest.passed / Self.threshold) + 2, "twice per threshold")
                #expect(loops.values.allSatisfy { $0 == 0 }, "\(loops)")
                #expect(Double(woken) <= rest.passed / .seconds(1) + 1, "\(others)")
            }
            let result = try #require(rest.result)
            #expect(result.injectedMilliseconds.count == 3)
            let reports = try result.files.map { file in
                try StallReport(jsonData: [UInt8](Data(contentsOf: URL(fileURLWithPath: rest.directory.path(file)))))
            }
            let labels = reports.map(\.loop.label).sorted()
            #expect(
                labels == ["nio", "queue-0", "queue-1", "queue-1", "queue-1"],
                "of equal stalls the first, second and fourth are reported")
            for report in reports {
                // At most half a threshold, plus the time to wake up.
                let uncertainty = try #require(report.startUncertaintyMilliseconds)
                if report.loop.label == "nio" { #expect(report.culprit?.function == "sleepTooLong(for:)") }
                steal.excuses { #expect(uncertainty < 250, "\(report.loop.label)") }
            }
        }
    #endif

    /// Measured since `DetectionTests` began.
    @Test func theWatchdogSleepsWhileFiftyLoopsWait() async throws {
        let watchdog = try await DetectionTests.whileLoopsWait.value
        let wakeUps = try #require(watchdog.wakeUps)
        // With CPU steal the program settles late.
        DetectionTests.steal.excuses { #expect(wakeUps == 0) }
        #expect(watchdog.reports == [])
    }

    /// Once in ten seconds: of twelve, twice at most, and before the program has settled each second.
    @Test func `the watchdog looks at an idle task pool once in ten seconds`() async throws {
        let watchdog = try await DetectionTests.withPool.value
        let wakeUps = try #require(watchdog.wakeUps)
        DetectionTests.steal.excuses { #expect(1...2 ~= wakeUps) }
        #expect(watchdog.reports == [])
    }

    /// While the watchdog sleeps until the queue's next look, a turn of the other loop has to wake it.
    @Test func `a short threshold counts beside a long one`() throws {
        let began = LinuxSupport.Semaphore()
        let monitor = try StallMonitor(
            .init(outputs: [], symbols: .init(lookup: .none), onEvent: { if case .began = $0 { began.post() } }))
        let probe = LoopProbe(label: "short")
        try monitor.watch(.probe(probe), threshold: .milliseconds(50))
        try monitor.watch(.queue(DispatchQueue(label: "long"), label: "long"), threshold: .seconds(60))
        try monitor.start()
        defer { monitor.stop() }
        usleep(500_000)
        for _ in 0..<3 {
            probe.beginTurn()
            // Without being woken, the watchdog would look after half a minute.
            let isSeen = began.wait(until: monotonicNow() + 10_000_000_000)
            probe.endTurn()
            #expect(isSeen)
            usleep(100_000)
        }
        #expect(eventually { monitor.statistics.stalls == 3 }, "\(monitor.statistics.stalls)")
    }
}
