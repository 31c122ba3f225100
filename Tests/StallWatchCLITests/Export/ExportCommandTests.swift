import Foundation
import StallReports
import Testing
import TextOutput

@testable import StallWatchCLI

@Suite struct CollapsedStacksTests {
    @Test func aLineForEachStack() throws {
        let text = String(decoding: CollapsedStacks.data(try .fixture()), as: UTF8.self)
        #expect(
            text == """
                app main;main;parse 500000
                app main;main;save;copy 300250
                app main;main;save;wait 500000
                app other loop;[no stack] 500

                """
        )
    }

    @Test func namesCannotBreakTheFormat() throws {
        var profile = StallProfile()
        profile.add(try StackFixture.report(300, loop: "a;b", [.init(at: 250, stack: ["f;g\nh"])]))
        #expect(String(decoding: CollapsedStacks.data(profile), as: UTF8.self) == "app a:b;f:g h 300000\n")
    }
}

@Suite struct FirefoxProfileTests {
    private struct File: Decodable {
        struct Meta: Decodable { var startTime: Int }
        struct Thread: Decodable {
            struct Samples: Decodable {
                var time: [Double]
                var weight: [Double]
                var stack: [Int]
            }
            struct Markers: Decodable {
                var name: [Int]
                var startTime: [Double]
                var endTime: [Double]
            }
            var name: String
            var isMainThread: Bool
            var samples: Samples
            var markers: Markers
        }
        struct Shared: Decodable { var stringArray: [String] }
        var meta: Meta
        var shared: Shared
        var threads: [Thread]
    }

    @Test func aThreadForEachLoop() throws {
        let bytes = FirefoxProfile.data(try .fixture())
        let file = try JSONDecoder().decode(File.self, from: Data(bytes))
        #expect(file.meta.startTime == 1_795_248_000_000)
        #expect(file.threads.map(\.name) == ["main", "other loop"])
        #expect(file.threads[0].isMainThread)
        #expect(file.threads[0].samples.time == [0, 1_000, 1_500])
        #expect(file.threads[0].samples.weight == [300.25, 500, 500])
        #expect(file.threads[0].markers.startTime == [0, 1_000])
        #expect(file.threads[0].markers.endTime == [300.25, 2_000])
    }

    @Test func samplesOfOverlappingStallsAreInOrder() throws {
        var profile = StallProfile()
        for start in ["00.000000", "00.100000"] {
            profile.add(
                try StackFixture.report(
                    900, startedAt: "2026-11-21T08:00:\(start)Z",
                    [.init(at: 250, stack: ["a"]), .init(at: 600, stack: ["b"])]
                )
            )
        }
        let file = try JSONDecoder().decode(File.self, from: Data(FirefoxProfile.data(profile)))
        #expect(file.threads[0].samples.time == [0, 100, 425, 525])
    }

    @Test func `turns are markers, also of a loop without stalls`() throws {
        func history(_ label: String, _ turns: [(at: Double, duration: Double)]) -> StallReport.LoopHistory {
            StallReport.LoopHistory(
                label: label, kind: .init(rawValue: "runLoop"),
                turns: turns.map {
                    .init(atMilliseconds: $0.at, durationMilliseconds: $0.duration, waitedMilliseconds: 0)
                })
        }
        var report = try StackFixture.report(
            300, startedAt: "2026-11-21T08:00:01.000000Z", [.init(at: 250, stack: ["save"])])
        report.history = StallReport.History(
            windowMilliseconds: 5_000, loops: [history(report.loop.label, [(-100, 40)]), history("db", [(10, 500)])])
        var profile = StallProfile()
        profile.add(report)
        let file = try JSONDecoder().decode(File.self, from: Data(FirefoxProfile.data(profile)))
        #expect(file.threads.map(\.name) == [report.loop.label, "db"])
        // The profile begins with the first turn.
        #expect(file.threads[0].markers.startTime == [100, 0])
        #expect(file.threads[0].markers.endTime == [400, 40])
        #expect(file.threads[0].markers.name.map { file.shared.stringArray[$0] } == ["Stall", "Turn"])
        #expect(file.threads[0].samples.time == [100])
        #expect(file.threads[1].markers.startTime == [110])
        #expect(file.threads[1].markers.endTime == [610])
        #expect(file.threads[1].samples.time == [])
    }
}

@Suite struct StallProfileTests {
    @Test func `only a format that shows the turns keeps them`() throws {
        var report = try StackFixture.report(300, [.init(at: 250, stack: ["save"])])
        let turn = StallReport.Turn(atMilliseconds: -100, durationMilliseconds: 40, waitedMilliseconds: 0)
        report.history = StallReport.History(
            windowMilliseconds: 5_000,
            loops: [StallReport.LoopHistory(label: "main", kind: report.loop.kind, turns: [turn])])
        for keepsTurns in [true, false] {
            var profile = StallProfile()
            profile.keepsTurns = keepsTurns
            profile.add(report)
            #expect(profile.stalls.map(\.history.count) == [keepsTurns ? 1 : 0])
        }
    }
}

@Suite struct JSONValueTests {
    private func text(_ value: JSONValue) -> String {
        String(decoding: JSONOutput.bytes(value, isIndented: false).dropLast(), as: UTF8.self)
    }

    @Test func everyKindOfValue() {
        let value = JSONValue.object([
            ("a", .null), ("b", .bool(true)), ("c", .int(-3)), ("d", .array([.string("x"), .ints([1, 2])])),
            ("e", .indices([0, nil])), ("f", .strings([])), ("g", .optional(nil as String?)),
        ])
        #expect(text(value) == #"{"a":null,"b":true,"c":-3,"d":["x",[1,2]],"e":[0,null],"f":[],"g":null}"#)
    }

    @Test(arguments: [
        (0, "0"), (1, "0.001"), (-1, "-0.001"), (1_500, "1.5"), (1_000, "1"), (-2_050, "-2.05"),
        (1_795_248_000_000_001, "1795248000000.001"),
    ])
    func millisecondsAreExact(microseconds: Int, text: String) {
        #expect(self.text(.milliseconds([microseconds])) == "[\(text)]")
    }

    @Test func everyTextIsReadBackUnchanged() throws {
        for text in ["", "\"\\/", "a\nb\t\u{0}\u{1f}\u{7f}", "é🙂\u{2028}", "</script><!-- &amp;"] {
            let bytes = JSONOutput.bytes(JSONValue.strings([text]))
            for json in [bytes, PlainJSON.escapedForScript(bytes)] {
                #expect(try JSONDecoder().decode([String].self, from: Data(json)) == [text])
            }
        }
    }

    @Test func noTextEndsAScriptElement() {
        let json = PlainJSON.escapedForScript(JSONOutput.bytes("</script><!--<script>&"))
        #expect(!json.contains { [UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "&")].contains($0) })
    }
}

@Suite struct LoopTimelineTests {
    private func turn(_ at: Double, _ duration: Double) -> StallReport.Turn {
        StallReport.Turn(atMilliseconds: at, durationMilliseconds: duration, waitedMilliseconds: 0)
    }

    private func history(_ label: String, _ turns: [StallReport.Turn]) -> StallReport.LoopHistory {
        StallReport.LoopHistory(label: label, kind: .init(rawValue: "runLoop"), turns: turns)
    }

    /// Returns a report of a stall of the loop "main" that began that many seconds after a fixed moment.
    private func report(_ seconds: Int, _ loops: [StallReport.LoopHistory]) throws -> StallReport {
        var report = try StackFixture.report(
            300, startedAt: "2026-11-21T08:00:0\(seconds).000000Z", [.init(at: 250, stack: ["save", "main"])])
        report.history = StallReport.History(windowMilliseconds: 5_000, loops: loops)
        return report
    }

    private func timelines(_ reports: [StallReport]) -> [LoopTimeline] {
        var profile = StallProfile()
        for report in reports { profile.add(report) }
        return LoopTimeline.timelines(of: profile)
    }

    /// The begin and duration of each span in milliseconds after the first stall, and whether it is a stall.
    private func shown(_ timeline: LoopTimeline, since: Int64) -> [String] {
        timeline.spans.map { "\(($0.begin - since) / 1_000)+\($0.microseconds / 1_000)\($0.stall == nil ? "" : "!")" }
    }

    @Test func turnsAndStallsAreOnOneLine() throws {
        let first = try report(1, [history("main", [turn(-100, 40), turn(-50, 40)]), history("db", [turn(10, 500)])])
        let found = timelines([first])
        let since = first.startedAt.microsecondsSince1970
        #expect(found.map(\.loop.label) == [first.loop.label, "db"])
        #expect(found.first.map { shown($0, since: since) } == ["-100+40", "-50+40", "0+300!"])
        #expect(found.last.map { shown($0, since: since) } == ["10+500"])
    }

    /// The second report's history has the first stall, and turns that the first report has too.
    @Test func whatTwoReportsHaveIsShownOnce() throws {
        let first = try report(1, [history("main", [turn(-100, 40)])])
        let second = try report(2, [history("main", [turn(-1_100.001, 40), turn(-1_000.001, 300), turn(-200, 10)])])
        let found = timelines([second, first])
        #expect(found.count == 1)
        #expect(
            found.first.map { shown($0, since: first.startedAt.microsecondsSince1970) } == [
                "-100+40", "0+300!", "800+10", "1000+300!",
            ])
    }

    /// Containers have the same process id, and often the same threads.
    @Test func `processes of two hosts are two`() throws {
        let first = try report(1, [history("main", [turn(-100, 40)])])
        var second = try report(1, [history("main", [turn(-100, 40)])])
        second.process.hostname = "other"
        let found = timelines([first, second])
        #expect(found.map(\.loop.number) == [0, 0])
        #expect(found.map(\.loop.process.host) == [first.process.hostname, "other"])
        #expect(found.allSatisfy { $0.spans.count == 2 })
    }

    @Test func stallsThatTwoMonitorsReportHaveLanes() throws {
        let found = timelines([try report(1, []), try report(1, [])])
        #expect(found.map(\.loop.number) == [0, 1])
        #expect(found.allSatisfy { $0.spans.count == 1 })
    }
}

@Suite struct PprofProfileTests {
    @Test func isTheSameEachTime() throws {
        let profile = try StallProfile.fixture()
        #expect(PprofProfile.data(profile) == PprofProfile.data(profile))
    }

    @Test func timesOutOfRangeAreLeftOut() throws {
        var profile = StallProfile()
        for year in ["0001", "9999"] {
            profile.add(
                try StackFixture.report(
                    300, startedAt: "\(year)-01-01T00:00:00.000000Z", [.init(at: 250, stack: ["a"])])
            )
        }
        #expect(!PprofProfile.data(profile).isEmpty)
    }
}

@Suite struct GzipFileTests {
    @Test func emptyAndLong() {
        #expect(
            GzipFile.data([]) == [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0]
        )
        let long = GzipFile.data([UInt8](repeating: 7, count: 70_000))
        #expect(long[10..<15] == [0, 0xff, 0xff, 0, 0])
        #expect(long.count == 10 + 5 + 65_535 + 5 + 4_465 + 8)
    }
}
