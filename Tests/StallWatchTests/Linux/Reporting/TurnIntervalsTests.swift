import Testing

@testable import StallWatch

@Suite struct TurnIntervalsTests {
    private static let second: UInt64 = 1_000_000_000

    private final class Source: LoopSource {
        let kind: LoopKind
        init(_ kind: LoopKind) { self.kind = kind }
    }

    private func loop(_ label: String, _ kind: LoopKind = .runLoop) -> LoopMonitor {
        LoopMonitor(
            label: label, threshold: 250_000_000, recorder: TurnRecorder(alarm: WatchdogAlarm()), source: Source(kind))
    }

    private func run(_ loop: LoopMonitor, turns: Int, milliseconds: UInt64) {
        for _ in 0..<turns { loop.recorder.histogram.record(milliseconds * 1_000_000) }
    }

    @Test func `an interval has the turns since the last one`() throws {
        let intervals = TurnIntervals(every: 10 * Self.second)
        let main = loop("main")
        run(main, turns: 7, milliseconds: 900)
        #expect(intervals.pass([main], at: 5 * Self.second) == [], "what came before is not known")
        run(main, turns: 98, milliseconds: 10)
        run(main, turns: 2, milliseconds: 200)
        #expect(intervals.pass([main], at: 14 * Self.second) == [])
        let found = try #require(intervals.pass([main], at: 15 * Self.second).first)
        #expect(found.turns == 100)
        let delay = try #require(found.delay)
        #expect((0.010...0.01126).contains(delay.p50))
        #expect((0.010...0.01126).contains(delay.p90))
        #expect((0.2...0.2251).contains(delay.p99))
        #expect((0.2...0.2251).contains(delay.longest))
        #expect(abs(delay.mean - 0.0138) < 0.000_001)
        #expect(abs((found.utilization ?? 0) - 0.138) < 0.000_001)
        #expect(found.threshold == 0.25)
    }

    @Test func `an interval without turns has no delay`() throws {
        let intervals = TurnIntervals(every: Self.second)
        let main = loop("main")
        _ = intervals.pass([main], at: Self.second)
        let found = try #require(intervals.pass([main], at: 3_600 * Self.second).first)
        #expect(found.turns == 0)
        #expect(found.delay == nil)
        #expect(found.utilization == 0)
    }

    @Test func `loops with one label are added up, and the busiest counts`() throws {
        let intervals = TurnIntervals(every: Self.second)
        let loops = [loop("b"), loop("a", .eventLoop), loop("b", .mainQueue), loop("b")]
        _ = intervals.pass(loops, at: Self.second)
        run(loops[0], turns: 1, milliseconds: 100)
        run(loops[1], turns: 5, milliseconds: 1)
        run(loops[2], turns: 1, milliseconds: 900)
        run(loops[3], turns: 1, milliseconds: 500)
        let found = intervals.pass(loops, at: 2 * Self.second)
        #expect(found.map(\.label) == ["a", "b"])
        #expect(found[0].utilization == nil, "its turns are heartbeats")
        #expect(found[1].turns == 3)
        #expect(found[1].utilization == 0.5)
    }

    @Test func `the last interval is shorter, and a removed loop is forgotten`() throws {
        let intervals = TurnIntervals(every: 60 * Self.second)
        let main = loop("main")
        _ = intervals.pass([main], at: Self.second)
        run(main, turns: 3, milliseconds: 1)
        #expect(intervals.pass([main], at: 2 * Self.second, isLast: true).map(\.turns) == [3])
        #expect(intervals.pass([], at: 3 * Self.second, isLast: true) == [])
    }
}
