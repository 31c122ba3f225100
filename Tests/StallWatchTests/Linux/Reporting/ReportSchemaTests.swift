import Foundation
import Glibc
import Testing
import TestSupport

@testable import LinuxSupport
@testable import StackCapture
@testable import StallReports
@testable import StallWatch

/// Checks written reports against the published schema with Python's jsonschema.
@Suite struct ReportSchemaTests {
    private let scratch = TemporaryDirectory.ofTest()

    @Test func reportsInEveryStateAreValid() throws {
        let settings = Reporter.Settings.fixture()
        _ = try withReporter(
            [.directory(scratch.path), .ndjson(path: scratch.path + "/all.ndjson")], settings: settings
        ) {
            reporter in
            for function in 0..<4 { reporter.submit(.fixture(function: function)) }
            var failed = StallRecord.fixture(function: 5, state: .abandoned)
            failed.samples[0].stack = .failure(CaptureFailure.noSuchThread)
            reporter.submit(failed)
        }
        let builder = settings.builder()
        try ReportDirectory(path: scratch.path).write(builder.draft(of: .fixture(function: 9, state: .ongoing)))
        #expect(try scratch.reports().count == 6)
        for path in [scratch.path, scratch.path + "/all.ndjson"] {
            try Repository.validateReports(path).expectNoFault()
        }
    }

    /// A report with every field of the schema keeps all of them when decoded and encoded, and gains none.
    @Test func `the schema has the fields of the type and no others`() throws {
        let file = Repository.root.appendingPathComponent("Schemas/stall-report.schema.json")
        let schema = try #require(
            try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
        let full = example(of: schema, schema["$defs"] as? [String: [String: Any]] ?? [:])
        let json = try JSONSerialization.data(withJSONObject: full)
        let report = try StallReport(jsonData: Array(json))
        let before = try JSONSerialization.jsonObject(with: json) as? NSDictionary
        let after = try JSONSerialization.jsonObject(with: Data(report.jsonData())) as? NSDictionary
        #expect(before == after)
        #expect(report.cause?.lock?.owners.first?.time != nil && report.history?.loops.first?.turns.count == 1)
    }

    /// Returns a value that a schema permits: an object with all fields, and a list with one element.
    private func example(of schema: [String: Any], _ definitions: [String: [String: Any]]) -> Any {
        if let name = (schema["$ref"] as? String)?.split(separator: "/").last,
            let definition = definitions[String(name)]
        {
            return example(of: definition, definitions)
        }
        let words = schema["x-words"] as? [String] ?? ["word"]
        switch schema["type"] as? String {
        case "object":
            if let fields = schema["properties"] as? [String: [String: Any]] {
                return fields.mapValues { example(of: $0, definitions) }
            }
            let value = example(of: schema["additionalProperties"] as? [String: Any] ?? [:], definitions)
            return Dictionary(uniqueKeysWithValues: words.map { ($0, value) })
        case "array": return [example(of: schema["items"] as? [String: Any] ?? [:], definitions)]
        case "string": return (schema["pattern"] as? String).map { Self.texts[$0] ?? "no text for \($0)" } ?? words[0]
        case "integer": return schema["minimum"] ?? 0
        case "number": return 0.5
        case "boolean": return true
        default: return schema["const"] ?? "no type"
        }
    }

    /// Texts by the schema's patterns.
    private static let texts = [
        "^[0-9a-f]{16}$": "9f2c41d07a3be815", "^[0-9a-f]{32}$": "4bf92f3577b34da6a3ce929d0e0e4736",
        "^[0-9a-f]+$": "3b1e", "^0x[0-9a-f]+$": "0x1f3a0",
        #"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"#: "2026-11-21T08:00:00.123456Z",
        "^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$":
            "01936c1e-7a52-7c3e-9d0e-5f3b8a1c2d4e",
    ]
}

/// Decodes untrusted files.
@Suite struct StallReportDecodingTests {
    private static var report: StallReport { Reporter.Settings.fixture().builder().report(of: .fixture(function: 1)) }

    @Test func newerWordsAreKeptAndNewerFieldsIgnored() throws {
        var text = String(decoding: Self.report.jsonData(), as: UTF8.self)
        text = text.replacingOccurrences(
            of: "\"kind\" : \"stall\"", with: "\"kind\" : \"boredom\", \"weather\" : { \"kind\" : \"moon\" }")
        text = text.replacingOccurrences(of: "\"method\" : \"read\"", with: "\"method\" : \"guess\"")
        let report = try StallReport(jsonData: Array(text.utf8))
        #expect(report.kind == StallKind(rawValue: "boredom"))
        #expect(report.samples[0].method?.rawValue == "guess")
        #expect(try StallReport(jsonData: report.jsonData()) == report)
    }

    /// Decodes 4,000 damaged files, in a separate process so that its memory can be measured.
    @Test func damagedFilesAreErrorsAndCostLittleMemory() async {
        await #expect(processExitsWith: .success) {
            var random = SeededGenerator(seed: 9)
            let whole = Self.report.jsonData()
            let hostile = Self.hostileFiles
            for number in 0..<rounds(4_000) {
                var bytes = whole
                var mustFail = false
                switch number % 4 {
                case 0:
                    bytes = Array(whole.prefix(Int.random(in: 0..<(whole.count - 2), using: &random)))
                    mustFail = true
                case 1:
                    for _ in 0..<Int.random(in: 1...8, using: &random) {
                        bytes[Int.random(in: 0..<bytes.count, using: &random)] ^=
                            1 << UInt8.random(in: 0..<8, using: &random)
                    }
                case 2:
                    let from = Int.random(in: 0..<bytes.count, using: &random)
                    let part = bytes[from..<min(from + 40, bytes.count)]
                    bytes.insert(contentsOf: part, at: Int.random(in: 0..<bytes.count, using: &random))
                default:
                    // Each large file once, the small ones repeatedly.
                    bytes = hostile[number < 4 * hostile.count ? number / 4 : number / 4 % 8]
                    mustFail = true
                }
                do throws(StallWatchError) {
                    let report = try StallReport(jsonData: bytes)
                    guard !mustFail, report.fault == nil else { Glibc.exit(2) }
                } catch {
                    guard error.code == .unreadableReport, !error.description.isEmpty else { Glibc.exit(3) }
                }
            }
            let status = readSmallFile("/proc/self/status") ?? ""
            let peak = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }.flatMap {
                Int($0.filter(\.isNumber))
            }
            // At most 16 MiB of JSON, plus the decoder's memory for half a million values.
            guard let peak, peak < 400_000 else {
                print("peak \(peak ?? 0) kB")
                Glibc.exit(4)
            }
        }
    }

    @Test func tooManyOrTooDeepValuesAreRefused() throws {
        let many = "[" + String(repeating: "0,", count: JSONBounds.maximumValues) + "0]"
        let deep = String(repeating: "{\"a\":", count: JSONBounds.maximumDepth + 1)
        for (text, word) in [(many, "values"), (deep, "levels deep")] {
            let error = #expect(throws: StallWatchError.self) { try StallReport(jsonData: Array(text.utf8)) }
            #expect(error?.code == .unreadableReport)
            #expect(error?.message.contains(word) == true)
        }
    }

    @Test func commasAndBracketsInStringsDoNotCount() {
        let bounds = JSONBounds(Array(#"{ "a[{," : [1, "\"],[", "\\"], "b" : { } }"#.utf8))
        #expect(bounds.values == 6)
        #expect(bounds.depth == 2)
        #expect(bounds.excess == nil)
    }

    /// A monitor's largest report is far below the limits.
    @Test func aReportOfTwentyStacksOf512FramesIsRead() throws {
        var report = Self.report
        let frame = try #require(report.frames.first)
        report.frames = (0..<20 * 512).map { number in
            var other = frame
            other.offset = .init(UInt64(number + 0x10000))
            (other.file, other.line, other.column) = ("/src/app/Sources/App/Feature\(number).swift", number, 9)
            return other
        }
        report.stacks = (0..<20).map { stack in (0..<512).map { stack * 512 + $0 } }
        let json = report.jsonData()
        #expect(JSONBounds(json).values < JSONBounds.maximumValues / 3)
        #expect(try StallReport(jsonData: json) == report)
    }

    private static var hostileFiles: [[UInt8]] {
        let texts = [
            "", "null", "[]", "{}", "{\"schemaVersion\":1e400}", "\u{0}", "{\"id\":\"\\ud800\"}",
            "{\"schemaVersion\":18446744073709551616}",
            String(repeating: "[", count: StallReport.maximumBytes), String(repeating: "{\"a\":", count: 1 << 20),
            "{\"stacks\":[" + String(repeating: "[],", count: 4 << 20) + "[]]}",
            // Just below the limits.
            "{\"stacks\":[" + String(repeating: "[],", count: 240_000) + "[]]}",
            "{\"metadata\":{" + String(repeating: "\"\":\"\",", count: 490_000) + "\"\":0}}",
            "{\"stacks\":[[" + String(repeating: "0,", count: 7 << 20) + "0]]}",
            "\"" + String(repeating: "\\u0000", count: 2 << 20) + "\"",
            String(repeating: " ", count: StallReport.maximumBytes + 1),
        ]
        return texts.map { Array($0.utf8) } + [
            [0xff, 0xfe, 0x00], [0xef, 0xbb, 0xbf], Array(repeating: 0xc0, count: 1 << 20),
        ]
    }
}
