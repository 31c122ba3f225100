import Synchronization
import Testing
import TestSupport

@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// The threshold over time, for recorded shapes of load.
@Suite struct AdaptiveThresholdTests {
    private static let millisecond: UInt64 = 1_000_000
    private static let minute: UInt64 = 60_000_000_000
    private static let bounds = 20 * millisecond...250 * millisecond

    /// The outcome of some minutes of load.
    private struct Outcome {
        /// The threshold after each minute, in milliseconds.
        var thresholds: [UInt64] = []
        /// The number of turns over the threshold of that minute.
        var reported: [Int] = []
    }

    /// Runs the turns of each minute, and reviews the threshold at its end.
    ///
    /// - Parameters:
    ///   - minutes: The number of minutes.
    ///   - turns: Returns the durations of one minute's turns, in nanoseconds.
    /// - Returns: The outcome.
    private func outcome(minutes: Int, _ turns: (Int) -> [UInt64]) -> Outcome {
        let histogram = TurnHistogram()
        var adaptive = AdaptiveThreshold(Self.bounds)
        var outcome = Outcome()
        adaptive.review(at: Self.minute) { histogram.snapshot() }
        for minute in 0..<minutes {
            var reported = 0
            for turn in turns(minute) {
                if turn >= adaptive.threshold { reported += 1 }
                histogram.record(turn)
            }
            adaptive.review(at: UInt64(minute + 2) * Self.minute) { histogram.snapshot() }
            outcome.thresholds.append(adaptive.threshold / Self.millisecond)
            outcome.reported.append(reported)
        }
        return outcome
    }

    /// Returns 3,000 turns whose durations vary around `mean` milliseconds as those of a real loop: most are near it, and
    /// the longest is three times as long.
    private func minute(around mean: Double, _ generator: inout SeededGenerator) -> [UInt64] {
        (0..<3_000).map { _ in
            let part = Double.random(in: 0..<1, using: &generator)
            let factor = part < 0.99 ? 0.5 + part : part < 0.999 ? 1.5 + (part - 0.99) * 50 : 2 + (part - 0.999) * 1_000
            return UInt64(mean * factor * Double(Self.millisecond))
        }
    }

    @Test func `steady turns of 2 ms give about the floor, and a stall of 60 ms is found`() {
        var generator = SeededGenerator(seed: 1)
        let outcome = outcome(minutes: 60) { index in
            var turns = minute(around: 2, &generator)
            if index == 30 { turns[1_500] = 60 * Self.millisecond }
            return turns
        }
        #expect(outcome.thresholds.prefix(14).allSatisfy { $0 == 250 }, "fourteen windows are not enough")
        #expect(outcome.thresholds.dropFirst(14).allSatisfy { (20...24).contains($0) }, "\(outcome.thresholds)")
        #expect(outcome.reported.enumerated().filter { $0.element > 0 }.map(\.offset) == [30])
        #expect(outcome.reported.reduce(0, +) == 1)
    }

    /// Every third minute has a hundred turns of 40 ms.
    @Test func `bursts keep the threshold above themselves`() {
        var generator = SeededGenerator(seed: 2)
        let outcome = outcome(minutes: 60) { index in
            var turns = minute(around: 2, &generator)
            if index % 3 == 0 { for turn in 0..<100 { turns[turn * 7] = 40 * Self.millisecond } }
            if index == 45 { turns[99] = 240 * Self.millisecond }
            return turns
        }
        #expect(outcome.reported.reduce(0, +) == 1, "\(outcome.reported)")
        #expect(outcome.reported[45] == 1)
        #expect(outcome.thresholds.dropFirst(14).allSatisfy { (160...180).contains($0) }, "\(outcome.thresholds)")
    }

    /// The turns grow from 2 ms to 40 ms in two hours.
    @Test func `a slow drift is followed without a report`() {
        var generator = SeededGenerator(seed: 3)
        let outcome = outcome(minutes: 120) { index in
            minute(around: 2 + 38 * Double(index) / 119, &generator)
        }
        #expect(outcome.reported.reduce(0, +) == 0)
        let learned = outcome.thresholds.dropFirst(14)
        #expect((40...70).contains(learned.first ?? 0), "\(learned)")
        #expect(learned.last == 250, "four times the longest turns is over the ceiling")
        #expect(zip(learned, learned.dropFirst()).allSatisfy { $1 * 10 >= $0 * 8 }, "it rises, but for random turns")
    }

    @Test func `one window with stalls does not raise the threshold, and two do`() {
        var generator = SeededGenerator(seed: 4)
        let outcome = outcome(minutes: 40) { index in
            var turns = minute(around: 2, &generator)
            if [20, 22].contains(index) { for turn in 0..<30 { turns[turn] = 100 * Self.millisecond } }
            return turns
        }
        #expect((20...24).contains(outcome.thresholds[21]))
        #expect(outcome.thresholds[22] == 250)
        #expect(outcome.reported[20] == 30 && outcome.reported[22] == 30, "all of them are found")
        #expect(outcome.thresholds[34] == 250)
        #expect((20...24).contains(outcome.thresholds[35]), "fifteen windows later one of the two is forgotten")
    }

    @Test func `a window needs a thousand turns`() {
        let outcome = outcome(minutes: 70) { _ in [UInt64](repeating: 2 * Self.millisecond, count: 250) }
        // A window has four minutes, so the fifteenth is closed after sixty.
        #expect(outcome.thresholds.firstIndex(of: 20) == 59)
    }

    @Test func `the histogram is read once a minute`() {
        let histogram = TurnHistogram()
        var reads = 0
        var adaptive = AdaptiveThreshold(Self.bounds)
        for time in stride(from: 0, to: 10 * Self.minute, by: Int(Self.minute / 100)) {
            adaptive.review(at: time) {
                reads += 1
                return histogram.snapshot()
            }
        }
        #expect(reads == 10)
    }

    @Test func `a fixed threshold never reads the histogram`() {
        var adaptive = AdaptiveThreshold(Self.millisecond...Self.millisecond)
        adaptive.review(at: Self.minute) {
            Issue.record("the histogram was read")
            return TurnHistogram().snapshot()
        }
        #expect(adaptive.threshold == Self.millisecond)
    }

    @Test func `durations beyond the histogram give the ceiling`() {
        let outcome = outcome(minutes: 16) { _ in [UInt64](repeating: 1 << 50, count: 2_000) }
        #expect(outcome.thresholds.allSatisfy { $0 == 250 })
    }
}

/// A supervisor that learns its loop's threshold.
@Suite struct AdaptiveSupervisorTests {
    private static let millisecond: UInt64 = 1_000_000
    private static let minute: UInt64 = 60_000_000_000

    private let world = WatchedWorld(at: Self.minute)
    private let loop = LoopMonitor(
        label: "adaptive", threshold: 250 * Self.millisecond, floor: 10 * Self.millisecond,
        recorder: TurnRecorder(alarm: WatchdogAlarm()), source: ThreadSource()
    )

    /// Runs sixteen minutes of turns of 4 ms, and returns the time afterwards.
    private func learn(_ supervisor: inout LoopSupervisor) -> UInt64 {
        for minute in 1...16 as ClosedRange<UInt64> {
            for _ in 0..<1_000 { loop.recorder.histogram.record(4 * Self.millisecond) }
            supervisor.poll(at: minute * Self.minute, in: world)
        }
        return 16 * Self.minute
    }

    @Test func `a learned threshold finds a stall, and the report says so`() throws {
        let services = world.services(FixedCapturer())
        var supervisor = LoopSupervisor(loop, services)
        #expect(loop.threshold == 250 * Self.millisecond)
        let now = learn(&supervisor)
        // Four times 4 ms, up to an eighth more.
        #expect((16...18).contains(loop.threshold / Self.millisecond))
        #expect(loop.isThresholdAdaptive)
        loop.recorder.beginTurn(at: now)
        supervisor.poll(at: now + loop.threshold - 1, in: world)
        #expect(world.states == [])
        supervisor.poll(at: now + loop.threshold, in: world)
        let record = try #require(world.records.withLock { $0.last })
        #expect(record.isThresholdAdaptive)
        #expect(record.threshold == loop.threshold)
        let report = ReportBuilder.stub().rawReport(of: record)
        #expect(report.isThresholdAdaptive == true)
        #expect(report.thresholdMilliseconds == 16.777)
    }

    @Test func `a new threshold begins at its ceiling`() {
        let services = world.services(FixedCapturer())
        var supervisor = LoopSupervisor(loop, services)
        let now = learn(&supervisor)
        loop.setThreshold(5 * Self.millisecond...100 * Self.millisecond)
        supervisor.poll(at: now + 1, in: world)
        #expect(loop.threshold == 100 * Self.millisecond)
        loop.setThreshold(70 * Self.millisecond...70 * Self.millisecond)
        supervisor.poll(at: now + 2, in: world)
        #expect(loop.threshold == 70 * Self.millisecond)
        #expect(!loop.isThresholdAdaptive)
    }

    @Test(arguments: [
        StallThreshold.adaptive(floor: .milliseconds(4), ceiling: .milliseconds(100)),
        .adaptive(floor: .milliseconds(200), ceiling: .milliseconds(100)),
        .adaptive(floor: .milliseconds(20), ceiling: .seconds(24 * 60 * 60 + 1)), .fixed(.zero),
    ])
    func `bounds out of range are refused`(threshold: StallThreshold) {
        let error = #expect(throws: StallWatchError.self) {
            try StallMonitor(.init(threshold: threshold, reports: .none))
        }
        #expect(error?.code == .invalidConfiguration)
    }
}
