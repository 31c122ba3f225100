import Foundation
import TestSupport
import Testing
import TextOutput

@testable import StallReports
@testable import StallWatchCLI

@Suite struct ShowTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test func `the time of merged stacks is that of the one stall`() throws {
        func stacks(repeats: Int, _ options: String...) throws -> Substring {
            let scratch = try TemporaryDirectory()
            let fixture = ReportFixture(number: 1, repeats: repeats, repeated: repeats > 0 ? [8_400, 300, 500] : nil)
            let second = #""atMilliseconds": 375.5, "stack": "#
            try scratch.write("stall-1.json", fixture.json.replacing(second + "0", with: second + "1"))
            let output = try Tool.run(["show", "stall-1.json", "--all"] + options, in: scratch).output
            let from = try #require(output.firstRange(of: "Stacks of 2 samples, merged"))
            return output[from.lowerBound...].split(separator: "\n\n")[0]
        }
        #expect(try stacks(repeats: 23) == stacks(repeats: 0))
        #expect(try stacks(repeats: 23, "--markdown") == stacks(repeats: 0, "--markdown"))
        let text = try stacks(repeats: 23)
        #expect(text.contains(" 313 ms ") && text.contains(" 187 ms "), "\(text)")
    }

    @Test func `an overdue operation's time has no bar, as it is an estimate`() throws {
        try scratch.write([ReportFixture(number: 1, kind: "overdue")])
        for options: [String] in [[], ["--all"], ["--markdown"]] {
            let text = try Tool.run(["show", "."] + options, in: scratch).output
            #expect(text.contains("lock") && !text.contains("on CPU"), "\(text)")
        }
    }

    @Test func aReportIsShownCompletely() throws {
        let source = (1...100).map { "line \($0)" }.joined(separator: "\n")
        let file = try scratch.write("NoteStore.swift", source)
        try scratch.write([ReportFixture(number: 1, repeats: 2, file: file)])
        let result = try Tool.run(["show", ".", "--all"], in: scratch)
        #expect(
            result.output == """
                main stalled for 500 ms in NoteStore.save(_:) (timer), held up by writeWAL()
                lock (certain): Blocked for 480 of 500 ms in pthread_mutex_lock.
                Try: Move the sleep in writeWAL() out of the section that holds the lock: copy what it needs under the lock, and let go of it first. See stallwatch explain lock.

                  ██▓░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░
                  █ on CPU 15 ms (3 %)  ▓ waiting for a CPU 5 ms (1 %)  ░ blocked 480 ms (96 %)

                Lock
                  main waits for the mutex at 0x7f1c2c0012a0, in pthread_mutex_lock
                  └ held by thread 4711 "db-writer", which is in clock_nanosleep(625 ms)
                      >  0 writeWAL()  notes

                Stack at 251 ms, 376 ms (blocked, read from /proc)
                     0 pthread_mutex_lock  libc.so.6
                  >  1 NoteStore.save(_:)  NoteStore.swift:88
                       … 1 runtime frame
                  >  3 notes+0x2f3a0

                NoteStore.swift:88
                  85 │ line 85
                  86 │ line 86
                  87 │ line 87
                > 88 │ line 88
                  89 │ line 89
                  90 │ line 90
                  91 │ line 91

                began       2026-11-21T08:00:00.123456Z
                loop        main (run loop), turn 7, thread 4700 "notes"
                threshold   250 ms
                process     notes, pid 4700, on web-3
                metadata    version=1.4.2
                fingerprint 9f2c41d07a3be815
                repeats     2 stalls like it since the report before
                report      01936c1e-7a52-7c3e-9d0e-000000000001, ./stall-20261121T080000.123456Z-000000000001.json

                Next: stallwatch symbolicate . --in-place  (some functions have no name)

                """
        )
        #expect(result.status == 0 && result.errors == "", "\(result)")
        let bare = try Tool.run(["show", ".", "--no-source", "--all-frames"], in: scratch).output
        #expect(!bare.contains("line 88"))
        #expect(bare.contains("     2 __CFRunLoopRun  libc.so.6\n"))
    }

    /// Writes two sources, and a report whose waiter and owner are in them; its texts can be as long as those of real ones.
    private func folderWithSources(frames: Int = 0, hasLongTexts: Bool = false) throws {
        let waiter = (1...100).map { "    let line\($0) = \($0)" }.joined(separator: "\n")
        let file = try scratch.write("NoteStore.swift", waiter)
        let owner = try scratch.write("WAL.swift", "func writeWAL() {\n    usleep(625_000)\n}\n")
        let state = hasLongTexts ? "ongoing" : "ended"
        var json = ReportFixture(number: 1, state: state, repeats: 2, file: file).json
        if hasLongTexts {
            let owner = #"thread 4711 \"db-writer\" in writeWAL() (WAL.swift:2), which is in clock_nanosleep(625 ms)"#
            for (short, long) in [
                ("in pthread_mutex_lock.", "in pthread_mutex_lock; the mutex is held by \(owner)."),
                (#""onCPUMilliseconds": 15"#, #""onCPUMilliseconds": 0.412"#),
                (#""runQueueMilliseconds": 5"#, #""runQueueMilliseconds": 0.051"#),
                (#""blockedMilliseconds": 480"#, #""blockedMilliseconds": 499.5"#),
            ] {
                try #require(json.contains(short))
                json = json.replacing(short, with: long)
            }
        }
        let named = #""function": "writeWAL()", "file": "\#(owner)", "line": 2"#
        json = json.replacing(#""function": "writeWAL()""#, with: named)
        let inner = (0..<frames).map { _ in "1, " }.joined()
        json = json.replacing("[0, 1, 2, 3]", with: "[0, \(inner)1, 2, 3]")
        try scratch.write("stall-1.json", json)
    }

    private func brief(_ options: String..., columns: Int? = nil) throws -> String {
        let environment = columns.map { ["COLUMNS": "\($0)"] } ?? [:]
        let result = try Tool.run(["show", "stall-1.json"] + options, in: scratch, environment: environment)
        #expect(result.status == 0 && result.errors == "", "\(result)")
        return result.output
    }

    @Test(arguments: [80, 120]) func `one screen has the owner's source beside the waiter's`(columns: Int) throws {
        try folderWithSources()
        let text = try brief(columns: columns)
        let rows = text.split(separator: "\n").map(String.init)
        let title = try #require(rows.firstIndex { $0.hasPrefix("waits: NoteStore.swift:88") })
        let half = (columns - 2) / 2
        #expect(rows[title] == "waits: NoteStore.swift:88".padded(to: half + 2) + "holds it: WAL.swift:2")
        let beside = rows[(title + 1)...].first { $0.hasPrefix("> 88") || $0.contains("> 2") }
        #expect(beside?.hasSuffix("> 2 │     usleep(625_000)") == true, "\(text)")
        // The indentation that all lines have is left out.
        #expect(rows.contains { $0.hasPrefix("> 88 │ let line88 = 88") }, "\(text)")
    }

    @Test(arguments: [80, 120, 200], [0, 100]) func `it fits 24 lines`(columns: Int, frames: Int) throws {
        try folderWithSources(frames: frames, hasLongTexts: true)
        let text = try brief(columns: columns)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        #expect(lines.count <= 23, "\(text)")
        #expect(lines.allSatisfy { String($0).columns <= columns }, "\(text)")
        #expect(text.contains("88 │") && text.contains("Held by thread 4711") && text.contains("> 88"), "\(text)")
        #expect(text.contains("more lines") == (frames > 0 || columns == 80), "\(text)")
        // Parts of 0 % do not take lines of their own.
        #expect(text.contains("on CPU 0.412 ms (0 %)") == (columns > 80), "\(text)")
        #expect(text.contains("░ blocked 500 ms (100 %)\n"), "\(text)")
        #expect(!text.contains("pthread_mutex_lock  libc.so.6") && !text.contains("runtime frame"), "\(text)")
    }

    @Test func `the rest is in the whole report, which the last line names`() throws {
        try folderWithSources()
        let text = try brief()
        #expect(!text.contains("fingerprint"))
        let next = "Next: stallwatch show . 000000000001 --all  (the whole report)\n"
        #expect(text.hasSuffix(next), "\(text)")
        let whole = try Tool.run(["show", ".", "000000000001", "--all"], in: scratch).output
        #expect(whole.contains("\nfingerprint 9f2c41d07a3be815\n"), "\(whole)")
    }

    @Test func `the next command finds the report that is shown`() throws {
        let report = try StallReport(jsonData: ReportFixture(number: 1).bytes)
        func view(_ path: String, line: Int? = nil) -> ReportView {
            ReportView(report: report, origin: ReportOrigin(path: path, line: line), terminal: Terminal())
        }
        // A search of the folder leaves out a file with another name.
        #expect(view("now.json").brief.contains("Next: stallwatch show now.json 000000000001 --all"))
        #expect(view("now.json").next.hasPrefix("Next: stallwatch symbolicate now.json --in-place  ("))
        #expect(view("old reports/now.json").folder == "'old reports/now.json'")
        #expect(view("stall-1.json").folder == "." && view("a/stall-1.json").folder == "a")
        // A file of several reports is not replaced.
        let lines = view("stalls/stalls.ndjson", line: 3).next
        #expect(lines.hasPrefix("Next: stallwatch symbolicate stalls --output named  ("), "\(lines)")
        try scratch.write("now.json", ReportFixture(number: 1).json)
        #expect(try Tool.run(["show", "now.json", "000000000001", "--all"], in: scratch).status == 0)
    }

    @Test func `a stack without the app's frames is shown as it is`() throws {
        let frame = #""isInApp": true, "kind": "code""#
        let text = ReportFixture(number: 1).json.replacing(frame, with: #""isInApp": false, "kind": "code""#)
        try scratch.write("stall-1.json", text)
        #expect(try brief().contains("Stack\n     0 pthread_mutex_lock  libc.so.6\n"))
    }

    @Test func `the frames are those of the culprit, also if another stack has more of the time`() throws {
        var report = try StackFixture.report(
            1_000,
            [
                .init(at: 100, stack: ["a", "work", "main"]), .init(at: 300, stack: ["b", "work", "main"]),
                .init(at: 600, stack: ["loop", "main"]), .init(at: 900, stack: ["loop", "main"]),
            ])
        report.culprit = .init(function: "work", image: "app", file: nil, line: nil)
        func frames() -> String {
            ReportView(report: report, origin: ReportOrigin(path: "-"), terminal: Terminal()).brief
        }
        let ofCulprit = "The app's frames for 25 % of the time\n  >  0 b  1.swift:1\n  >  1 work  4.swift:4\n"
        #expect(frames().contains(ofCulprit), "\(frames())")
        report.culprit = nil
        #expect(frames().contains("The app's frames for 30 % of the time\n  >  0 loop  4.swift:4\n"), "\(frames())")
    }

    @Test func optionsSelectTheShownReport() throws {
        try scratch.write([
            ReportFixture(number: 1, startedAt: "2026-11-21T08:00:01.000000Z", milliseconds: 900),
            ReportFixture(number: 2, startedAt: "2026-11-21T08:00:03.000000Z", milliseconds: 300),
            ReportFixture(number: 3, startedAt: "2026-11-21T08:00:02.000000Z", milliseconds: 600),
        ])
        func shown(_ arguments: String...) throws -> [Int] {
            let output = try Tool.run(["show", "--json", scratch.path] + arguments).output
            return output.split(separator: "\n").compactMap { line in
                line.hasPrefix("  \"id\" : ") ? Int(line.dropLast(2).suffix(12)) : nil
            }
        }
        #expect(try shown() == [2])
        #expect(try shown("--sort", "longest") == [1])
        #expect(try shown("--sort", "max") == [1], "as in top")
        #expect(try shown("--limit", "2") == [2, 3])
        #expect(try shown("-n2") == [2, 3], "as in head")
        #expect(try shown("-n", "2") == [2, 3])
        #expect(try shown("--limit", "9", "--sort", "longest") == [1, 3, 2])
        #expect(try shown("--id", ReportFixture(number: 3).id) == [3])
        #expect(try shown("--id", "0001") == [1])
        #expect(try shown("--min", "500ms") == [3])
        #expect(
            try Tool.run(["show", scratch.path]).output.hasSuffix(
                "1 of 3 reports shown: --limit, --sort and --id choose others.\n"))
    }

    @Test func anOngoingStallSaysSo() throws {
        let report = try StallReport(jsonData: ReportFixture(state: "ongoing").bytes)
        let view = ReportView(report: report, origin: ReportOrigin(path: "-", line: 3), terminal: Terminal())
        #expect(view.text.hasPrefix("main stalled and has not come back after 500 ms in NoteStore.save(_:) (timer), "))
        #expect(view.text.contains("(timer), held up by writeWAL()\n"))
        #expect(view.text.contains("\nIt was still going on when this report was written.\n"))
        #expect(view.text.contains(", standard input:3\n\nNext: "))
    }

    @Test func `threads that wait in run loops are counted by their start functions`() throws {
        var report = try StallReport(jsonData: ReportFixture().bytes)
        func frame(_ function: String, isInApp: Bool = false) -> Int {
            report.frames.append(
                .init(offset: "0x1", function: function, symbol: function, isInApp: isInApp, kind: .code))
            return report.frames.count - 1
        }
        let (run, start) = (frame("CFRunLoopRunSpecific"), frame("open", isInApp: true))
        let (other, shared) = (frame("serve", isInApp: true), frame("runTheLoop", isInApp: true))
        let callout = frame("__CFRUNLOOP_IS_CALLING_OUT_TO_A_BLOCK__")
        // The last three are in no loop, in a callout, and in one without a name: they do not wait for events.
        let stacks = [
            [run, shared, start], [run, shared, other], [run, start], [other], [callout, run, start],
            [other, run, start],
        ]
        let known = report.stacks.count
        report.stacks += stacks
        report.otherThreads = stacks.indices.map { index in
            StallReport.OtherThread(thread: .init(id: 7), stack: known + index, threadState: .blocked)
        }
        report.otherThreads?.append(.init(thread: .init(id: 8), stack: known + 2, threadState: .running))
        let view = ReportView(report: report, origin: ReportOrigin(path: "-"), terminal: Terminal())
        #expect(view.waitingLoops == "\n2 threads wait in run loops of open.\n1 thread waits in a run loop of serve.\n")
    }

    @Test func eachLoopHasALineOfItsTurns() throws {
        var report = try StallReport(jsonData: ReportFixture().bytes)
        func turns(_ at: [Double], ongoing: Bool = false) -> [StallReport.Turn] {
            at.map {
                StallReport.Turn(
                    atMilliseconds: $0, durationMilliseconds: 500, waitedMilliseconds: 0,
                    isOngoing: ongoing ? true : nil)
            }
        }
        let kind = report.loop.kind
        report.history = StallReport.History(
            windowMilliseconds: 5_000,
            loops: [
                .init(label: "main", kind: kind, turns: turns([-2_500, -1_000])),
                .init(label: "db", kind: kind, turns: turns([0], ongoing: true), omitsOlderTurns: true),
                .init(label: "idle", kind: kind, turns: []),
            ], omittedLoops: 2)
        let text = ReportView(report: report, origin: ReportOrigin(path: "-"), terminal: Terminal(width: 60)).text
        let expected = """
            The 5.00 s before, and the stall (one cell is 239 ms)
              main  ··········▓█▓···▒██·░██  2 turns, at most 500 ms
              db    ····················░██  over 1 turn, one for 500 ms
            3 other loops are not shown: idle, or over the limit.
            """
        #expect(text.contains(expected), "\(text)")
        report.history?.loops.removeSubrange(1...)
        report.history?.loops[0].turns = []
        #expect(ReportView(report: report, origin: ReportOrigin(path: "-"), terminal: Terminal()).history == "")
    }

    @Test(arguments: [Int.min, -1, 0, 8, Int.max]) func aMissingSourceLineIsNotShown(line: Int) throws {
        let file = try scratch.write("short.swift", "one\ntwo")
        let json = ReportFixture(file: file).json.replacingOccurrences(of: "\"line\": 88", with: "\"line\": \(line)")
        let report = try StallReport(jsonData: Array(json.utf8))
        #expect(ReportView(report: report, origin: ReportOrigin(path: "-"), terminal: Terminal()).source() == "")
    }

    @Test(arguments: [[0.5, 0.25, 0.25], [0.002, 0.001, 0.997], [1, 0, 0], [0.34, 0.33, 0.33]])
    func aBarIsAlwaysFull(shares: [Double]) {
        for width in [10, 37, 50] {
            let cells = ReportView.shares(shares, of: width)
            #expect(cells.reduce(0, +) == width)
            #expect(zip(cells, shares).allSatisfy { $0 > 0 || $1 <= 0.001 })
        }
    }
}
