import StallReports
import Testing

@testable import LinuxSupport
@testable import StallWatch

@Suite struct StallHistoryTests {
    private final class Source: LoopSource {
        let kind = LoopKind.runLoop

        func target(of recorder: TurnRecorder) -> CaptureTarget { .unknown }
    }

    private static let millisecond: UInt64 = 1_000_000
    /// When the stall began, in milliseconds.
    private static let start: UInt64 = 100_000

    private func loop(_ label: String, turns: [(began: UInt64, ended: UInt64?)]) -> LoopMonitor {
        let recorder = TurnRecorder(alarm: WatchdogAlarm())
        for turn in turns {
            recorder.beginTurn(at: turn.began * Self.millisecond)
            if let ended = turn.ended { recorder.endTurn(at: ended * Self.millisecond) }
        }
        return LoopMonitor(label: label, threshold: Self.millisecond, recorder: recorder, source: Source())
    }

    private func history(_ own: LoopMonitor, _ others: [LoopMonitor], at now: UInt64) -> StallHistory {
        StallHistory(
            of: own, among: [own] + others, start: Self.start * Self.millisecond, now: now * Self.millisecond)
    }

    @Test func theStalledLoopHasTheTurnsBeforeTheStall() throws {
        var earlier: [(began: UInt64, ended: UInt64?)] = []
        for turn: UInt64 in 0..<12 {
            let began = Self.start - 1_000 + turn * 80
            earlier.append((began, began + 40))
        }
        let own = loop("main", turns: earlier + [(Self.start, nil)])
        let report = StallReport.History(history(own, [], at: Self.start + 250), duration: 250 * Self.millisecond)
        let turns = try #require(report.loops.first?.turns)
        #expect(turns.count == 12)
        #expect(turns.allSatisfy { $0.durationMilliseconds == 40 && $0.isOngoing == nil })
        #expect(turns.first?.atMilliseconds == -1_000)
        #expect(turns.dropFirst().allSatisfy { $0.waitedMilliseconds == 40 })
    }

    @Test func turnsThatEndedBeforeTheWindowAreLeftOut() {
        let own = loop("main", turns: [(1, 2), (Self.start - 5_001, Self.start - 4_999), (Self.start, nil)])
        let kept = history(own, [], at: Self.start + 250).own.turns
        #expect(kept.map(\.began) == [(Self.start - 5_001) * Self.millisecond])
    }

    @Test func otherLoopsAreShownBeforeAndDuringTheStall() throws {
        let own = loop("main", turns: [(Self.start, nil)])
        let other = loop("db", turns: [(Self.start - 10, Self.start - 5), (Self.start + 50, nil)])
        var history = history(own, [other], at: Self.start + 250)
        let first = StallReport.History(history, duration: 250 * Self.millisecond).loops
        #expect(first.map(\.label) == ["main", "db"])
        #expect(first.last?.turns.map(\.durationMilliseconds) == [5, 200])
        #expect(first.last?.turns.last?.isOngoing == true)
        other.recorder.endTurn(at: (Self.start + 300) * Self.millisecond)
        history.update(among: [own, other], now: (Self.start + 400) * Self.millisecond)
        let last = StallReport.History(history, duration: 400 * Self.millisecond).loops.last
        #expect(last?.turns.map(\.durationMilliseconds) == [5, 250])
        #expect(last?.turns.last?.isOngoing == nil)
    }

    @Test func earlierReadingsKeepWhatALoopHasReplaced() {
        let own = loop("main", turns: [(Self.start, nil)])
        let other = loop("db", turns: [(Self.start - 10, Self.start - 5)])
        var history = history(own, [other], at: Self.start + 250)
        for number in 0..<UInt64(TurnHistory.capacity) {
            other.recorder.beginTurn(at: (Self.start + 300 + number * 3) * Self.millisecond)
            other.recorder.endTurn(at: (Self.start + 302 + number * 3) * Self.millisecond)
        }
        history.update(among: [own, other], now: (Self.start + 2_000) * Self.millisecond)
        #expect(history.others.first?.turns.count == TurnHistory.capacity + 1)
        let shown = StallReport.History(history, duration: 2_000 * Self.millisecond).loops.last
        #expect(shown?.turns.count == StallReport.History.maximumOtherTurns)
        #expect(shown?.omitsOlderTurns == true)
    }

    @Test func aLoopThatIsNoLongerWatchedKeepsItsTurns() {
        let own = loop("main", turns: [(Self.start, nil)])
        let other = loop("db", turns: [(Self.start - 10, Self.start - 5)])
        var history = history(own, [other], at: Self.start + 250)
        history.update(among: [own], now: (Self.start + 400) * Self.millisecond)
        #expect(history.others.map(\.turns.count) == [1])
    }

    @Test func loopsOverTheLimitAreCounted() {
        let own = loop("main", turns: [(Self.start, nil)])
        let others = (0..<20).map { loop("loop-\($0)", turns: []) }
        let history = history(own, others, at: Self.start + 250)
        #expect(history.others.count == StallHistory.maximumOthers)
        #expect(StallReport.History(history, duration: 1).omittedLoops == 4)
    }
}
