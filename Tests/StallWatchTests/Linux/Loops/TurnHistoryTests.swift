import Synchronization
import TestSupport
import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct TurnHistoryTests {
    private static let millisecond: UInt64 = 1_000_000

    private func turn(_ began: UInt64, _ ended: UInt64, waited: UInt64) -> TurnHistory.Turn {
        TurnHistory.Turn(
            began: began * Self.millisecond, ended: ended * Self.millisecond, waited: waited * Self.millisecond)
    }

    @Test func turnsOfAMillisecondAreKept() {
        let history = TurnHistory()
        history.record(began: 10 * Self.millisecond, ended: 11 * Self.millisecond - 1, previousEnd: 0)
        history.record(began: 20 * Self.millisecond, ended: 21 * Self.millisecond, previousEnd: 18 * Self.millisecond)
        history.record(began: 21 * Self.millisecond, ended: 61 * Self.millisecond, previousEnd: 21 * Self.millisecond)
        #expect(history.turns(endedSince: 0) == [turn(20, 21, waited: 2), turn(21, 61, waited: 0)])
        #expect(history.turns(endedSince: 21 * Self.millisecond + 1) == [turn(21, 61, waited: 0)])
    }

    @Test func theOldestTurnIsReplaced() {
        let history = TurnHistory()
        for number in 1...UInt64(TurnHistory.capacity + 10) {
            history.record(
                began: number * 10 * Self.millisecond, ended: (number * 10 + 2) * Self.millisecond, previousEnd: 0)
        }
        let turns = history.turns(endedSince: 0)
        #expect(turns.count == TurnHistory.capacity)
        #expect(turns.first?.began == 110 * Self.millisecond)
        #expect(turns.last?.began == UInt64(TurnHistory.capacity + 10) * 10 * Self.millisecond)
    }

    @Test func `turns that were read are skipped, also when others replaced them`() {
        let history = TurnHistory(capacity: 2)
        for number in 1...5 as ClosedRange<UInt64> {
            history.record(
                began: number * 10 * Self.millisecond, ended: (number * 10 + 2) * Self.millisecond, previousEnd: 0)
        }
        #expect(history.count == 5)
        #expect(history.turns(endedSince: 0) == [turn(40, 42, waited: 0), turn(50, 52, waited: 0)])
        #expect(history.turns(endedSince: 0, skipping: 4) == [turn(50, 52, waited: 0)])
        #expect(history.turns(endedSince: 0, skipping: 5) == [])
    }

    /// Each turn's words depend on each other, so that a torn reading shows.
    @Test func aReadingIsNeverTorn() throws {
        let history = TurnHistory()
        let isOver = Atomic<Bool>(false)
        let thread = try WorkerThread(name: "turns") {
            var time = Self.millisecond
            while !isOver.load(ordering: .relaxed) {
                history.record(began: time, ended: time * 2, previousEnd: time - time / 2)
                time += 2
            }
        }
        defer {
            isOver.store(true, ordering: .relaxed)
            thread.join()
        }
        try #require(eventually { !history.turns(endedSince: 0).isEmpty })
        for _ in 0..<2_000 {
            let turns = history.turns(endedSince: 0)
            let torn = turns.filter { $0.ended != $0.began * 2 || $0.waited != $0.began / 2 }
            #expect(torn.isEmpty)
            #expect(zip(turns, turns.dropFirst()).allSatisfy { $0.began + 2 == $1.began })
        }
    }

    @Test func theCurrentTurnIsTheLastOne() {
        let recorder = TurnRecorder(alarm: WatchdogAlarm())
        recorder.beginTurn(at: 100 * Self.millisecond)
        recorder.endTurn(at: 140 * Self.millisecond)
        recorder.beginTurn(at: 150 * Self.millisecond)
        let current = TurnHistory.Turn(began: 150 * Self.millisecond, waited: 10 * Self.millisecond)
        let first = turn(100, 140, waited: 0)
        #expect(recorder.turns(endedSince: 0, now: 155 * Self.millisecond) == [first, current])
        #expect(recorder.turns(endedSince: 0, now: 150 * Self.millisecond + 1) == [first], "it is short so far")
        #expect(recorder.turns(endedSince: 141 * Self.millisecond, now: 155 * Self.millisecond) == [current])
    }
}

@Suite struct TurnHistogramTests {
    @Test func everyDurationIsInsideItsBucket() {
        var durations: [UInt64] = [0, 1, 1_023, 1_024, 1_025, .max, 1 << 44, 1 << 44 - 1, 1 << 63]
        for power in 0..<64 {
            for offset in [-1, 0, 1] {
                durations.append((UInt64(1) << UInt64(power)) &+ UInt64(bitPattern: Int64(offset)))
            }
        }
        for duration in durations {
            let bucket = TurnHistogram.bucket(of: duration)
            #expect((0..<TurnHistogram.bucketCount).contains(bucket))
            if let upper = TurnHistogram.upperBound(of: bucket) { #expect(duration < upper) }
            if bucket > 0, let lower = TurnHistogram.upperBound(of: bucket - 1) { #expect(duration >= lower) }
        }
    }

    @Test func aBucketIsAtMostAnEighthWide() throws {
        for bucket in 1..<(TurnHistogram.bucketCount - 1) {
            let lower = try #require(TurnHistogram.upperBound(of: bucket - 1))
            let upper = try #require(TurnHistogram.upperBound(of: bucket))
            #expect(upper > lower)
            #expect(Double(upper - lower) / Double(lower) <= 0.125)
        }
        #expect(TurnHistogram.upperBound(of: TurnHistogram.bucketCount - 1) == nil)
    }

    @Test func countsAndTimeAddUp() {
        let histogram = TurnHistogram()
        for duration: UInt64 in 1...1_000 { histogram.record(duration * 1_000) }
        let other = TurnHistogram()
        other.record(1 << 50)
        let sum = TurnHistogram.Snapshot(sumOf: [histogram.snapshot(), other.snapshot()])
        #expect(sum.counts.reduce(0, +) == 1_001)
        #expect(sum.counts.last == 1)
        #expect(sum.busyNanoseconds == 500_500_000 + 1 << 50)
    }

    @Test func quantilesAreAtMostAnEighthTooLarge() throws {
        let recorder = TurnRecorder(alarm: WatchdogAlarm())
        for duration: UInt64 in 1...1_000 { recorder.histogram.record(duration * 1_000_000) }
        let source = HeartbeatSource(kind: .runLoop) { _ in }
        let monitor = LoopMonitor(label: "main", threshold: 250_000_000, recorder: recorder, source: source)
        let loop = LoopStatistics(
            label: "main", nanoseconds: 7_200_000_000_000, [(monitor, BusyTurns(of: monitor, at: nil))])
        #expect(loop.threshold == .milliseconds(250))
        #expect(loop.busyTime == .microseconds(500_500_000))
        #expect(loop.meanTurn == .microseconds(500_500))
        #expect(loop.utilization == 500.5 / 7_200)
        for (quantile, milliseconds) in [(0.0, 1.0), (0.5, 500), (0.99, 990), (1, 1_000)] {
            let found = try #require(loop.turnDuration(quantile: quantile)) / .milliseconds(1)
            #expect((milliseconds...(milliseconds * 1.126)).contains(found), "\(quantile): \(found)")
        }
        #expect(loop.turns == 1_000)
    }
}
