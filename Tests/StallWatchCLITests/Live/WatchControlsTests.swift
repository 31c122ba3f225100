import StallReports
import Testing
import TextOutput

@testable import StallWatchCLI

@Suite struct WatchControlsTests {
    private static func stalls() throws -> [ControlAnswer.StallSummary] {
        try [("save", 300.0), ("load", 900), ("save", 500), ("save", 400), ("sync", 100)].enumerated().map {
            number, stall in
            let fixture = ReportFixture(
                number: number, startedAt: "2026-11-21T08:00:\(50 - number).000000Z", milliseconds: stall.1,
                function: stall.0)
            return ControlAnswer.StallSummary(try StallReport(jsonData: fixture.bytes))
        }
    }

    private static func names(_ order: WatchControls.Order) throws -> [String?] {
        WatchGroup.groups(of: try stalls(), by: order).map(\.key.function)
    }

    @Test func `equal stalls are one group`() throws {
        #expect(try Self.names(.newest) == ["save", "load", "sync"])
        #expect(try Self.names(.longest) == ["load", "save", "sync"])
        #expect(try Self.names(.count) == ["save", "load", "sync"])
        let first = WatchGroup.groups(of: try Self.stalls(), by: .newest)[0]
        #expect(first.count == 3 && first.longest == 500 && first.latest.durationMilliseconds == 300)
    }

    @Test(
        arguments: [
            ("q", .quit), ("", .quit), ("\r", .enter), ("\n", .enter), ("\u{1b}[A", .up), ("\u{1b}OB", .down),
            ("\u{1b}", .back), ("s", .sort), ("?", .help), ("x", .other), ("\u{1b}[15~", .other),
        ] as [(String, WatchControls.Key)])
    func `bytes are keys`(bytes: String, key: WatchControls.Key) {
        #expect(WatchControls.Key(Array(bytes.utf8)) == key)
    }

    private func controls(_ keys: WatchControls.Key...) throws -> WatchControls {
        try keys.reduce(WatchControls()) { controls, key in
            controls.after(key, WatchGroup.groups(of: try Self.stalls(), by: controls.order))
        }
    }

    @Test func `keys choose, open, sort and end`() throws {
        #expect(try controls(.down).selected?.function == "load")
        #expect(try controls(.down, .down, .down, .down).selected?.function == "sync")
        #expect(try controls(.down, .up, .up).selected?.function == "save")
        #expect(try controls(.down, .enter).isOpen)
        #expect(try controls(.enter, .down, .down, .up).scrolled == 1)
        #expect(try controls(.enter, .down, .back) == controls(.enter, .enter))
        #expect(try controls(.sort).order == .longest)
        #expect(try controls(.sort, .sort, .sort).order == .newest)
        // The chosen group stays chosen in another order.
        #expect(try controls(.down, .sort).selected?.function == "load")
        #expect(try controls(.help).showsHelp && !controls(.help, .enter).showsHelp && !controls(.help, .enter).isOpen)
        #expect(try controls(.quit).isDone && controls(.other) == WatchControls())
        #expect(!WatchControls().after(.enter, []).isOpen)
    }

    @Test func `stalls that the monitor no longer lists are kept`() throws {
        let stalls = try Self.stalls()
        var old = stalls[2]
        old.isOngoing = true
        let earlier = WatchedProcess.earlier([stalls[1], old], than: [stalls[0], stalls[1]])
        #expect(earlier == [stalls[2]])
    }

    @Test func `a history has the last minute`() {
        func time(_ seconds: Int64) -> Timestamp { Timestamp(microsecondsSince1970: seconds * 1_000_000) }
        var history = LoadHistory()
        history.add(nil, from: nil, to: time(100))
        history.add(0.5, from: time(100), to: time(102))
        history.add(0.9, from: time(102), to: time(103))
        #expect(history.values(until: time(103)).suffix(4) == [nil, 0.5, 0.5, 0.9])
        history.add(0.1, from: time(103), to: time(162))
        #expect(history.values(until: time(162)).compactMap(\.self).count == 60)
        #expect(history.values(until: time(162)).first == 0.9)
        // The wall clock was set back.
        history.add(0.2, from: time(162), to: time(50))
        #expect(history.values(until: time(50)).compactMap(\.self) == [0.2])
    }

    @Test func `a sparkline keeps the greatest value and ends with the newest`() {
        #expect(Sparkline.text([0, 0.5, 1, nil], columns: 4) == "▁▅█ ")
        #expect(Sparkline.text([0.1, 0, 1, 0, 0.5], columns: 3) == "▁█▅")
        #expect(Sparkline.text([], columns: 9) == "" && Sparkline.text([1], columns: 0) == "")
    }

    @Test func `an opened stall and the help fill the screen`() throws {
        let time = try #require(Timestamp("2026-11-21T08:01:00.000000Z"))
        let frame = WatchFrame(process: "p", pid: 1, time: time, loops: [], stalls: try Self.stalls())
        let size = WatchFrame.Size(columns: 60, rows: 6)
        let text = (1...20).map { "line \($0)" }.joined(separator: "\n")
        func lines(_ controls: WatchControls, _ opened: String? = nil) -> [String] {
            frame.lines(in: size, for: Terminal(isTerminal: true), controls, opened: opened)
        }
        var controls = try controls(.enter)
        #expect(lines(controls, text).dropFirst(2) == ["line 1", "line 2", "line 3", "line 4"])
        controls.scrolled = 99
        #expect(lines(controls, text).last == "line 20")
        controls.scrolled = 0
        #expect(
            lines(controls).contains { $0.hasPrefix("main has stalled for 300 ms in save") || $0.contains("in save") })
        #expect(lines(try self.controls(.help)).contains { $0.hasPrefix("Enter") })
        #expect(WatchFrame.age(59_999) == "59 s" && WatchFrame.age(60_000) == "1 min" && WatchFrame.age(7.3e6) == "2 h")
    }
}
