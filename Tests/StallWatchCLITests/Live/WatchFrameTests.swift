import Foundation
import Glibc
import StallReports
import TestSupport
import Testing
import TextOutput

@testable import StallWatchCLI

/// The screen of `watch`, whole at two sizes: `Texts/screen-watch-SIZE.txt`.
///
/// With the variable STALLWATCH_WRITE_SCREENS, the files are written instead of compared, and the tests fail.
@Suite struct WatchFrameTests {
    private static func loop(
        _ label: String, turn: Double? = nil, busy: Double?, stalls: Int = 0, threshold: Double = 250
    ) -> WatchFrame.Loop {
        WatchFrame.Loop(
            state: .init(
                label: label, turnMilliseconds: turn, thresholdMilliseconds: threshold, utilization: 0.5,
                busyMilliseconds: 0, watchedMilliseconds: 1, stalls: stalls, lastStall: nil),
            busy: busy,
            history: (0..<60).map { second in
                busy.flatMap { second < 10 ? nil : Double(second % 8) / 8 * $0 }
            })
    }

    private static func stall(_ number: Int, isOngoing: Bool = false) throws -> ControlAnswer.StallSummary {
        let fixture = ReportFixture(
            number: number, startedAt: "2026-11-21T08:00:\(10 + number).500000Z", milliseconds: 300 + Double(number))
        var report = try StallReport(jsonData: fixture.bytes)
        report.state = isOngoing ? .ongoing : .ended
        return ControlAnswer.StallSummary(report)
    }

    private static func frame(loops: Int = 4, stalls: Int = 12) throws -> WatchFrame {
        var known = [
            loop("database", busy: 0.337, stalls: 3), loop("main", turn: 3_200, busy: 1, stalls: 41),
            loop("network", turn: 12, busy: 0.921), loop("tasks", busy: nil),
        ]
        known += (0..<max(loops - known.count, 0)).map { loop("worker \($0)", busy: Double($0) / 100) }
        let latest = try (1...max(stalls, 1)).reversed().map { try stall($0, isOngoing: $0 == stalls) }
        return WatchFrame(
            process: "notes", pid: 4_700, time: try #require(Timestamp("2026-11-21T08:00:25.000000Z")),
            loops: Array(known.prefix(loops)), stalls: stalls == 0 ? [] : latest)
    }

    private static let sizes = [WatchFrame.Size(columns: 80, rows: 24), .init(columns: 160, rows: 50)]

    @Test(arguments: sizes) func `the screen is as expected`(size: WatchFrame.Size) throws {
        let text = try Self.frame().lines(in: size, for: Terminal(isTerminal: true)).joined(separator: "\n") + "\n"
        let name = "screen-watch-\(size.columns)x\(size.rows)"
        let file = Repository.root.appendingPathComponent("Tests/StallWatchCLITests/Texts/\(name).txt")
        if getenv("STALLWATCH_WRITE_SCREENS") != nil {
            try text.write(to: file, atomically: true, encoding: .utf8)
            Issue.record("written")
        }
        #expect(try text == String(contentsOf: file, encoding: .utf8))
    }

    @Test func `every screen from 40 columns on is filled and not exceeded`() throws {
        for loops in [0, 1, 4, 60] {
            for stalls in [0, 1, 12] {
                let frame = try Self.frame(loops: loops, stalls: stalls)
                for columns in 40...200 {
                    for rows in [1, 2, 5, 8, 24, 50] {
                        let lines = frame.lines(
                            in: .init(columns: columns, rows: rows), for: Terminal(isTerminal: true))
                        #expect(lines.count <= rows)
                        let longest = lines.map(\.columns).max() ?? 0
                        #expect(
                            longest <= columns, "\(columns) × \(rows): \(lines.first { $0.columns == longest } ?? "")")
                    }
                }
            }
        }
    }

    @Test func `of too many loops the stalled and the busiest are shown`() throws {
        let lines = try Self.frame(loops: 60).lines(in: .init(columns: 80, rows: 24), for: Terminal(isTerminal: true))
        let text = lines.joined(separator: "\n")
        #expect(text.contains("main") && text.contains("network") && text.contains("worker 55"))
        #expect(!text.contains("worker 0"))
        #expect(text.contains("… and 52 other loops"))
    }

    @Test func `a text from the process cannot control the terminal`() throws {
        var frame = try Self.frame()
        frame.process = "a\u{1b}[2Jb"
        frame.loops[0].state.label = "\u{1b}]0;x\u{7}"
        frame.stalls[0].function = "f\u{9b}2J"
        frame.stalls[0].sentence = "s\u{1b}c"
        let lines = frame.lines(in: .init(columns: 100, rows: 30), for: Terminal(isTerminal: true))
        #expect(!lines.joined().unicodeScalars.contains { $0.value == 0x1b || $0.value == 0x9b || $0.value == 7 })
    }

    @Test func `a loop's load is that of the interval`() throws {
        func state(_ busy: Double, _ watched: Double) -> ControlAnswer.LoopState {
            ControlAnswer.LoopState(
                label: "main", turnMilliseconds: nil, thresholdMilliseconds: 250, utilization: 0,
                busyMilliseconds: busy, watchedMilliseconds: watched, stalls: 0, lastStall: nil)
        }
        #expect(WatchedProcess.busy(from: state(9_000, 10_000), to: state(9_250, 11_000)) == 0.25)
        #expect(WatchedProcess.busy(from: state(0, 10_000), to: state(2_000, 11_000)) == 1)
        // A loop that was removed and watched again.
        #expect(WatchedProcess.busy(from: state(9_000, 10_000), to: state(1, 500)) == nil)
        let first = WatchedProcess.frame(
            of: ControlAnswer(pid: 1, loops: [state(1, 10)]), after: [:], process: "p", pid: 1,
            at: Timestamp(microsecondsSince1970: 0))
        #expect(first.loops.map(\.busy) == [nil])
    }
}
