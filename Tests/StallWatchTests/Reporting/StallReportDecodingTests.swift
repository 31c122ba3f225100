import Foundation
import Glibc
import Testing

@testable import LinuxSupport
@testable import StallReports
@testable import StallWatch

/// Decodes untrusted files.
@Suite struct StallReportDecodingTests {
    /// A random number generator with a fixed seed (xorshift64*).
    private struct Repeatable: RandomNumberGenerator {
        var state: UInt64 = 0x9e37_79b9_7f4a_7c15

        mutating func next() -> UInt64 {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return state &* 0x2545_f491_4f6c_dd1d
        }
    }

    private static var report: StallReport { Reporter.Settings.fixture().builder().report(of: .fixture(function: 1)) }

    @Test func newerWordsAreKeptAndNewerFieldsIgnored() throws {
        var text = String(decoding: Self.report.jsonData(), as: UTF8.self)
        text = text.replacingOccurrences(
            of: "\"kind\" : \"stall\"", with: "\"kind\" : \"boredom\", \"weather\" : { \"kind\" : \"moon\" }")
        text = text.replacingOccurrences(of: "\"method\" : \"read\"", with: "\"method\" : \"guess\"")
        let report = try StallReport(jsonData: Array(text.utf8))
        #expect(report.kind == StallReport.Kind(rawValue: "boredom"))
        #expect(report.samples[0].method?.rawValue == "guess")
        #expect(try StallReport(jsonData: report.jsonData()) == report)
    }

    @Test func aNewerSchemaIsRefusedWithAHint() throws {
        for text in [
            "{\"schemaVersion\" : 2}",
            String(decoding: Self.report.jsonData(), as: UTF8.self)
                .replacingOccurrences(of: "\"schemaVersion\" : 1", with: "\"schemaVersion\" : 2"),
        ] {
            let error = #expect(throws: StallWatchError.self) { try StallReport(jsonData: Array(text.utf8)) }
            #expect(error?.message.contains("use a newer StallWatch") == true)
        }
    }

    @Test(arguments: [
        ("\"stack\" : 0", "\"stack\" : 7"), ("\"stack\" : 0", "\"stack\" : -1"), ("\"image\" : 0", "\"image\" : 1"),
        ("\"durationMilliseconds\" : 400", "\"durationMilliseconds\" : -1"),
        ("\"durationMilliseconds\" : 400", "\"durationMilliseconds\" : 1e999"), ("\"pid\" : ", "\"pid\" : 99999999999"),
        ("\"repeats\" : 0", "\"repeats\" : -2"), ("\"schemaVersion\" : 1", "\"schemaVersion\" : 0"),
        ("\"nesting\" : 0", "\"nesting\" : 0.5"),
    ])
    func invalidIndicesAndNumbersAreErrors(right: String, wrong: String) throws {
        let text = String(decoding: Self.report.jsonData(), as: UTF8.self)
        try #require(text.contains(right))
        let error = #expect(throws: StallWatchError.self) {
            try StallReport(jsonData: Array(text.replacingOccurrences(of: right, with: wrong).utf8))
        }
        #expect(error?.code == .unreadableReport)
    }

    /// Decodes 100,000 damaged files, in a separate process so that its memory can be measured.
    @Test func damagedFilesAreErrorsAndCostLittleMemory() async {
        await #expect(processExitsWith: .success) {
            var random = Repeatable()
            let whole = Self.report.jsonData()
            let hostile = Self.hostileFiles
            for number in 0..<100_000 {
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
            other.offset = "0x" + String(number + 0x10000, radix: 16)
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
