import Foundation
import Glibc
import LinuxSupport
import TestSupport
import Testing
import TextOutput

@testable import StallReports
@testable import StallWatchCLI

@Suite struct WatchFrameTests {
    private static func loop(
        _ label: String, turn: Double? = nil, busy: Double?, stalls: Int = 0, threshold: Double = 250
    ) -> WatchFrame.LoopRow {
        var state = LoopStatistics(label: label)
        state.currentTurn = turn.map { .milliseconds($0) }
        state.threshold = .milliseconds(threshold)
        state.stalls = stalls
        if let busy { state.latency = [LatencyBucket(upperBound: .milliseconds(busy * 16), turns: 1)] }
        return WatchFrame.LoopRow(
            state: state, busy: busy,
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
            loops: Array(known.prefix(loops)), stalls: stalls == 0 ? [] : latest,
            tasks: .init(
                count: 318, suspended: 300, unmovedMilliseconds: 125_000,
                unmoved: "task 12 in load() at Loader.swift:40 awaits a continuation"))
    }

    private static let sizes = [WatchFrame.Size(columns: 60, rows: 24), .init(columns: 120, rows: 30)]

    @Test(arguments: sizes) func `the screen is as expected`(size: WatchFrame.Size) throws {
        let text = try Self.frame().lines(in: size, for: Terminal(isTerminal: true)).joined(separator: "\n") + "\n"
        try ExpectedTexts.screens.expect(text, "watch-\(size.columns)x\(size.rows)")
    }

    @Test func `every screen from 40 columns on is filled and not exceeded`() throws {
        for loops in [0, 1, 4, 60] {
            for stalls in [0, 1, 12] {
                let frame = try Self.frame(loops: loops, stalls: stalls)
                for columns in 40...200 {
                    // Each number of rows with every sixth of columns, and with others for other frames.
                    let rows = [1, 2, 5, 8, 24, 50][(columns + loops + stalls) % 6]
                    let lines = frame.lines(in: .init(columns: columns, rows: rows), for: Terminal(isTerminal: true))
                    #expect(lines.count <= rows)
                    let longest = lines.map(\.columns).max() ?? 0
                    #expect(longest <= columns, "\(columns) × \(rows): \(lines.first { $0.columns == longest } ?? "")")
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

    @Test func `stalls that were over when the watchdog looked are counted`() throws {
        var frame = try Self.frame()
        let line = "3 stalls were over when the watchdog looked"
        #expect(!frame.lines(in: Self.sizes[0], for: Terminal(isTerminal: true)).contains(line))
        (frame.loops[0].state.missed, frame.loops[1].state.missed) = (1, 2)
        #expect(frame.lines(in: Self.sizes[0], for: Terminal(isTerminal: true)).contains(line))
    }

    @Test func `a loop's load is that of the interval`() throws {
        func state(_ busy: Int, _ watched: Int, turn: Int? = nil) -> LoopStatistics {
            var loop = LoopStatistics(label: "main")
            (loop.busyTime, loop.watchedTime) = (.milliseconds(busy), .milliseconds(watched))
            loop.currentTurn = turn.map { .milliseconds($0) }
            loop.utilization = 0.5
            return loop
        }
        #expect(PolledProcess.busy(from: state(9_000, 10_000), to: state(9_250, 11_000)) == 0.25)
        #expect(PolledProcess.busy(from: state(9_000, 10_000), to: state(9_000, 11_000, turn: 250)) == 0.25)
        #expect(PolledProcess.busy(from: state(0, 10_000), to: state(2_000, 11_000)) == 1)
        // A loop that was removed and watched again.
        #expect(PolledProcess.busy(from: state(9_000, 10_000), to: state(1, 500)) == nil)
        #expect(PolledProcess.busy(from: nil, to: state(1, 10)) == nil)
        var heartbeats = state(9_250, 11_000)
        heartbeats.utilization = nil
        #expect(PolledProcess.busy(from: state(9_000, 10_000), to: heartbeats) == nil, "its turns are waits")
    }
}

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

    @Test func `a group shows the stall that lasts, also if a newer one has ended`() throws {
        var stalls = try Self.stalls()
        stalls[2].isOngoing = true
        let first = WatchGroup.groups(of: stalls, by: .newest)[0]
        #expect(first.latest == stalls[2] && first.latest.durationMilliseconds == 500)
    }

    @Test(
        arguments: [
            ("q", .quit), ("", .quit), ("\r", .enter), ("\n", .enter), ("\u{1b}[A", .up), ("\u{1b}OB", .down),
            ("\u{1b}", .back), ("s", .sort), ("?", .help), ("x", .other), ("\u{1b}[15~", .other),
        ] as [(String, WatchControls.Key)])
    func `bytes are keys`(bytes: String, key: WatchControls.Key) {
        #expect(WatchControls.Key(Array(bytes.utf8)) == key)
    }

    @Test func `a held key is as many keys`() {
        let keys = WatchControls.Key.keys(Array("\u{1b}[B\u{1b}[Bj\u{1b}OAq".utf8))
        #expect(keys == [.down, .down, .down, .up, .quit])
        #expect(WatchControls.Key.keys([]) == [.quit] && WatchControls.Key.keys([0x1b]) == [.back])
        // Alt and q, a key with a number, and the begin of one.
        let others = WatchControls.Key.keys(Array("\u{1b}q\u{1b}[15~\u{1b}[".utf8))
        #expect(others == [.other, .other, .other])
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
        let earlier = PolledProcess.earlier([stalls[1], old], than: [stalls[0], stalls[1]])
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
        #expect(frame.mostScrolled(in: size, controls, opened: text) == 16)
        #expect(frame.mostScrolled(in: size, WatchControls(), opened: nil) == 0)
        controls.scrolled = 0
        #expect(
            lines(controls).contains { $0.hasPrefix("main has stalled for 300 ms in save") || $0.contains("in save") })
        // Of a request that has ended, it does not say that it has not.
        var late = try Self.stalls()[0]
        late.kind = .overdue
        let ended = WatchFrame(process: "p", pid: 1, time: time, loops: [], stalls: [late])
            .lines(in: size, for: Terminal(isTerminal: true), controls)
        #expect(ended.contains { $0.hasPrefix("main took 300 ms in save") }, "\(ended)")
        #expect(lines(try self.controls(.help)).contains { $0.hasPrefix("Enter") })
        #expect(WatchFrame.age(59_999) == "59 s" && WatchFrame.age(60_000) == "1 min" && WatchFrame.age(7.3e6) == "2 h")
    }
}

@Suite struct ControlClientTests {
    private let directory = TemporaryDirectory.ofTest()
    private static let table = """
        Num       RefCount Protocol Flags    Type St Inode Path
        0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/a b/stallwatch-7.socket
        0000000000000000: 00000002 00000000 00010000 0001 01 102 /run/other.socket
        0000000000000000: 00000003 00000000 00000000 0001 03 103
        0000000000000000: 00000002 00000000 00010000 0001 01 104 @stallwatch-7.socket
        """

    @Test func `the path belongs to a socket of the process`() {
        #expect(ControlClient.controlPath(in: Self.table, ofSockets: ["101"]) == "/run/a b/stallwatch-7.socket")
        #expect(ControlClient.controlPath(in: Self.table, ofSockets: ["102", "103", "104"]) == nil)
    }

    @Test func `an answer of another version is not taken for none`() throws {
        let client = ControlClient(pid: 4_700)
        func status(_ line: String) -> CommandFailure.Status? {
            do throws(CommandFailure) {
                _ = try client.decoded(Array(line.utf8))
                return nil
            } catch {
                return error.status
            }
        }
        #expect(status(#"{"version":1,"pid":4700}"# + "\n") == nil)
        #expect(status(#"{"version":1,"pid":4700,"loops":[{"name":"main"}]}"# + "\n") == .faultyData)
        #expect(status(#"{"version":1,"pid":47"#) == .tryAgain)
        #expect(status("") == .tryAgain)
    }

    @Test(arguments: [(true, 65), (nil, 75)] as [(Bool?, Int32)])
    func `a request that the monitor does not know is not to be tried again`(isUnknown: Bool?, status: Int32) throws {
        var refusal = ControlAnswer(pid: getpid(), error: "it is of another version")
        refusal.isUnknownRequest = isUnknown
        let line = refusal.jsonLine()
        let server = try LineServer(path: directory.path("s")) { _ in .bytes(line) }
        let worker = try WorkerThread(name: "test-server") { server.run() }
        defer {
            server.end()
            worker.join()
        }
        var client = ControlClient(pid: getpid())
        client.knownPath = directory.path("s")
        let failure = #expect(throws: CommandFailure.self) { try client.answer(to: .state) }
        #expect(failure?.status.rawValue == status)
        #expect(failure?.sentence.hasSuffix(" refused the request: it is of another version.") == true)
    }
}

@Suite struct TaskStandingsTests {
    private static func graph(_ tasks: [TaskList.Task]) throws -> TaskGraph {
        var report = try StallReport(jsonData: ReportFixture().bytes)
        report.frames = [.init(offset: "0x1", function: "load()", isInApp: true, kind: .asyncCaller)]
        report.stacks = [[0]]
        return TaskGraph(TaskList(tasks: tasks), report)
    }

    private static func task(_ id: UInt64, _ wait: TaskList.Wait = .continuation) -> TaskList.Task {
        .init(id: id, state: wait == .pool ? .enqueued : .suspended, wait: wait, stack: 0)
    }

    @Test func `the task that has been in the same place for the longest time is named`() throws {
        var standings = TaskStandings()
        let second: UInt64 = 1_000_000_000
        let first = standings.update(try Self.graph([Self.task(1), Self.task(2), Self.task(3, .pool)]), at: second)
        #expect(first.text == "3 tasks, 2 suspended")
        // The first one has moved, and the third one only waits for a thread.
        let both = [Self.task(1, .sleep), Self.task(2), Self.task(3, .pool), Self.task(4)]
        let next = standings.update(try Self.graph(both), at: 11 * second)
        #expect(next.text == "4 tasks, 3 suspended; unmoved for 10 s: task 2 in load() awaits a continuation")
        let last = standings.update(try Self.graph([Self.task(1, .sleep)]), at: 21 * second)
        #expect(last.text == "1 task, 1 suspended; unmoved for 10 s: task 1 in load() sleeps")
        #expect(standings.update(try Self.graph([]), at: 31 * second) == .init(count: 0, suspended: 0))
        #expect(standings.update(try Self.graph([Self.task(1, .sleep)]), at: 41 * second).unmoved == nil)
    }
}
