import TestSupport
import Foundation
import Testing

@testable import StallReports

@Suite struct StallReportJSONTests {
    /// An older report of the same schema version may lack fields that were added later.
    @Test func aReportWithoutLaterFieldsIsRead() throws {
        var json = reportLiteral
        json = json.replacing(", \"captureMethods\": [\"read\", \"ptrace\"]", with: "")
        #expect(json != reportLiteral)
        #expect(try StallReport(jsonData: Array(json.utf8)).monitor.captureMethods == nil)
    }

    @Test func `reasons are no keys that an encoder may convert`() throws {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        var counts = SuppressionCounts()
        counts[.processStopped] = 3
        let data = try encoder.encode(counts)
        #expect(String(decoding: data, as: UTF8.self).contains(#""processStopped":3"#))
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        #expect(try decoder.decode(SuppressionCounts.self, from: data) == counts)
    }

    @Test func `a report without optional fields survives a round trip`() throws {
        var report = try StallReport.literal()
        report.callout = nil
        report.culprit = nil
        report.process.startedAt = nil
        report.process.operatingSystem = nil
        report.process.bootID = nil
        report.loop.thread = nil
        report.samples = []
        report.stacks = []
        report.frames = []
        report.images = []
        #expect(try StallReport(jsonData: report.jsonData()) == report)
        let text = String(decoding: report.jsonData(), as: UTF8.self)
        #expect(!text.contains("null") && !text.contains("callout") && text.contains("samples"))
    }

    @Test func theJSONIsIndentedWithSortedKeys() throws {
        let text = String(decoding: try StallReport.literal().jsonData(), as: UTF8.self)
        #expect(text.hasSuffix("}\n"))
        #expect(text.contains("\n  \"durationMilliseconds\" : 812.4,\n"))
        #expect(text.contains("/opt/notes/bin/notes"), "slashes are not escaped")
        let keys = text.split(separator: "\n").filter { $0.hasPrefix("  \"") }
        #expect(keys == keys.sorted())
    }

    /// A report with stacks of such lengths, of functions with names of two KB.
    private func report(samples: Int, frames: Int) throws -> StallReport {
        var report = try StallReport.literal()
        report.frames = (0..<samples * frames).map { number in
            let name = "f\(number)(" + String(repeating: "ä", count: 2_000) + ")"
            return .init(
                image: 0, offset: .init(UInt64(number)), function: name, symbol: name, isInApp: true, kind: .code)
        }
        report.stacks = (0..<samples).map { Array($0 * frames..<($0 + 1) * frames) }
        report.samples = (0..<samples).map { number in
            var sample = report.samples[0]
            sample.stack = number
            return sample
        }
        (report.otherThreads, report.waits, report.tasks, report.cause) = (nil, nil, nil, nil)
        return report
    }

    @Test func `a report has at most 4 MiB`() throws {
        #expect(try report(samples: 20, frames: 512).jsonLine().count <= StallReport.maximumWrittenBytes)
    }

    @Test(arguments: [(2, 8), (2, 128), (10, 72), (200, 8)])
    func `a report is written with less of its stacks, and says what it lacks`(samples: Int, frames: Int) throws {
        let report = try report(samples: samples, frames: frames)
        #expect(report.fault == nil)
        for isIndented in [true, false] {
            let bytes = report.json(isIndented: isIndented, limit: 256 << 10)
            #expect(bytes.count <= 256 << 10)
            let read = try StallReport(jsonData: bytes)
            #expect(read.samples.count == samples && read.fault == nil)
            let isWhole = read.stacks.map(\.count) == report.stacks.map(\.count)
            #expect(isWhole == (samples == 2 && frames == 8))
            #expect(read.samples.allSatisfy { isWhole || !$0.isComplete && $0.reason?.contains("left out") == true })
            #expect(read.stacks.allSatisfy { $0.allSatisfy { read.frames[$0].function?.hasPrefix("f") == true } })
        }
    }

    @Test func `a short stack of another thread is not said to be cut`() throws {
        var report = try report(samples: 2, frames: 128)
        report.stacks.append([0])
        var other = StallReport.OtherThread(thread: .init(id: 7))
        other.stack = 2
        report.otherThreads = [other]
        let read = try StallReport(jsonData: report.json(isIndented: false, limit: 256 << 10))
        #expect(read.stacks[0].count < 128 && read.stacks[2].count == 1)
        #expect(read.otherThreads?.first?.reason == nil)
    }

    @Test func `a long name keeps its beginning and is told apart by a hash`() {
        let names = ["a", "b"].map { String(repeating: "ö", count: 5_000) + $0 }
        let bounded = names.map(StallReport.bounded)
        #expect(
            bounded.allSatisfy { $0.hasPrefix("ööö") && (1_000...1_024).contains($0.utf8.count) && $0.hasSuffix("]") })
        #expect(bounded[0] != bounded[1])
        for name in ["", String(repeating: "x", count: 1_024)] { #expect(StallReport.bounded(name) == name) }
        #expect(StallReport.bounded(bounded[0]) == bounded[0])
    }

    @Test(arguments: ["", "\u{0}", "{\"a\": \"\u{7}\\\"}", "Zürich 日本 🙂", "a\nb\tc"])
    func anyTextSurvivesARoundTrip(text: String) throws {
        var report = try StallReport.literal()
        report.metadata = [text: text]
        report.loop.thread?.name = text
        #expect(try StallReport(jsonData: report.jsonData()) == report)
    }

    // MARK: Invalid input

    private func reading(_ json: String) -> StallWatchError? {
        #expect(throws: StallWatchError.self) { try StallReport(jsonData: Array(json.utf8)) }
    }

    @Test(arguments: ["", "nonsense", "{", "[]", "null", "42", "\"text\"", "{}", "\u{feff}"])
    func otherJSONAndOtherTextAreRefused(json: String) throws {
        let error = try #require(reading(json))
        #expect(error.code == .unreadableReport)
        #expect(error.message.hasPrefix("this is not a stall report"))
    }

    @Test(arguments: [
        ("\"stack\": 0", "\"stack\": 9", "samples[0].stack is 9, but there are 2 stacks"),
        ("[0, 1, 2]", "[0, 1, 7]", "stacks[0][2] is 7, but there are 3 frames"),
        ("\"image\": 0", "\"image\": -1", "frames[1].image is -1, but there are 2 images"),
        ("\"nesting\": 0", "\"nesting\": -1", "loop.nesting is -1, but a count cannot be negative"),
        ("\"rateLimit\": 0", "\"rateLimit\": -3", "monitor.suppressed.rateLimit is -3, but a count cannot be negative"),
        (
            "\"captureMicroseconds\": 182.5", "\"captureMicroseconds\": -182.5",
            "samples[0].captureMicroseconds is -182.5, but a duration is at least 0 and less than 1e15"
        ),
        ("\"schemaVersion\": 1", "\"schemaVersion\": 0", "schemaVersion is 0, but the first version is 1"),
        ("\"turn\": 1234, ", "", "$.loop: turn is missing"),
        ("\"state\": \"ended\"", "\"state\": null", "$.state: null is not allowed here"),
        (
            "\"durationMilliseconds\": 812.4", "\"durationMilliseconds\": 1e300",
            "durationMilliseconds is 1e+300, but a duration is at least 0 and less than 1e15"
        ),
        (
            "\"repeats\": 0", "\"repeats\": 9007199254740992",
            "repeats is 9007199254740992, but a count is at most 9007199254740991"
        ),
        ("\"pid\": 4700", "\"pid\": \"4700\"", ".process.pid"), ("\"offset\": \"0x1f3a0\", ", "", ".frames[1]"),
        ("\"2026-11-21T08:00:00.123456Z\"", "\"yesterday\"", ".startedAt"),
        ("[0, 1, 2]", "[0, true, 2]", ".stacks[0][1]"),
        // The decoder names no place of numbers that do not fit.
        ("\"pid\": 4700", "\"pid\": 99999999999", "report: The given data"),
        ("\"nesting\": 0", "\"nesting\": 0.5", "report: The given data"),
    ])
    func aFaultIsReportedWithItsPlaceAndValue(good: String, bad: String, fault: String) throws {
        let json = reportLiteral.replacing(good, with: bad)
        try #require(json != reportLiteral)
        let error = try #require(reading(json))
        #expect(error.code == .unreadableReport)
        #expect(error.message.hasPrefix("this is not a stall report: ") && error.message.contains(fault))
    }

    private static func withLock(of stack: Int) -> StallReport.Lock {
        var owner = StallReport.LockOwner(thread: .init(id: 7), isRunning: false)
        owner.stack = stack
        return StallReport.Lock(kind: .pthreadMutex, isDeadlock: false, owners: [owner])
    }

    /// Every command relies on these rules after it has decoded a report.
    @Test func `each list of a report is checked`() throws {
        var other = StallReport.OtherThread(thread: .init(id: 7))
        other.stack = 9
        var waiting = StallReport.OtherThread(thread: .init(id: 7))
        waiting.lock = Self.withLock(of: 9)
        var cause = StallReport.Cause(
            kind: .lock, confidence: .certain, onCPUMilliseconds: 0, runQueueMilliseconds: 0, blockedMilliseconds: 812,
            uncertaintyMilliseconds: 0)
        cause.lock = Self.withLock(of: 9)
        let turn = StallReport.Turn(atMilliseconds: -40, durationMilliseconds: -1, waitedMilliseconds: 0)
        let history = StallReport.History(
            windowMilliseconds: 5_000, loops: [.init(label: "main", kind: .runLoop, turns: [turn])])
        let stacks = "is 9, but there are 2 stacks"
        let changes: [(fault: String, change: (inout StallReport) -> Void)] = [
            ("samples[1].workers[0].stack \(stacks)", { $0.samples[1].workers = [.init(stack: 9, threads: [])] }),
            ("otherThreads[0].stack \(stacks)", { $0.otherThreads = [other] }),
            ("otherThreads[0].lock.owners[0].stack \(stacks)", { $0.otherThreads = [waiting] }),
            ("waits[0].stack \(stacks)", { $0.waits = [.init(kind: .task, stack: 9)] }),
            ("cause.lock.owners[0].stack \(stacks)", { $0.cause = cause }),
            (
                "history.loops[0].turns[0].durationMilliseconds is -1.0, but a duration is at least 0 and less than 1e15",
                { $0.history = history }
            ),
        ]
        for (fault, change) in changes {
            var report = try StallReport.literal()
            change(&report)
            #expect(report.fault == fault)
            #expect(throws: StallWatchError.self) { try StallReport(jsonData: report.jsonData()) }
        }
    }

    @Test(arguments: [
        #"{"schemaVersion": 2}"#, reportLiteral.replacing("\"schemaVersion\": 1", with: "\"schemaVersion\": 2"),
    ])
    func theErrorForANewerSchemaNamesItsVersion(json: String) throws {
        let error = try #require(reading(json))
        #expect(error.code == .unreadableReport)
        #expect(error.message.contains("schema version 2"))
        #expect(error.message.contains("newer StallWatch"))
    }
}
