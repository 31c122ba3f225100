import Foundation
import StallReports
import Testing

@testable import StallWatchCLI

@Suite struct JSONScannerTests {
    private func skips(_ text: String) -> Bool {
        var scanner = JSONScanner(Array(text.utf8))
        return (try? scanner.skipValue()) != nil && (try? scanner.end()) != nil
    }

    @Test(arguments: [
        "{}", "[]", " { \"a\" : [1, -2.5e3, true, false, null, \"\\\"\"] }\n", "0", "-0.0E+12", "\"\"", "\"\\u00e9\"",
        "[[[[]]],{\"a\":{\"b\":{}}}]",
    ])
    func passesOverWhatIsJSON(text: String) { #expect(skips(text)) }

    @Test(arguments: [
        "", "{", "[", "\"", "tru", "nulll", "01", "1.", ".5", "-", "1e", "+1", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
        "[1,]",
        "[1 2]", "{a:1}", "{\"a\":1 \"b\":2}", "[1]]", "\"\n\"", "NaN", "{,}", "{1:2}", "\"\\\"",
    ])
    func refusesWhatIsNot(text: String) { #expect(!skips(text)) }

    /// Wherever it stands among others.
    @Test func theEndOfATextIsFound() {
        for byte in UInt8.min...UInt8.max {
            for place in 0..<19 {
                var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: 19)
                bytes[place] = byte
                let isSpecial = byte < 0x20 || byte == 0x22 || byte == 0x5c
                #expect(bytes.endOfPlainText(from: 0) == (isSpecial ? place : 19))
                #expect(bytes.endOfPlainText(from: place + 1) == 19)
                #expect(bytes.isASCII == (byte < 0x80))
            }
        }
    }

    @Test func nestingIsLimited() {
        let depth = JSONScanner.maximumDepth
        #expect(skips(String(repeating: "[", count: depth) + String(repeating: "]", count: depth)))
        #expect(!skips(String(repeating: "[", count: depth + 1) + String(repeating: "]", count: depth + 1)))
        #expect(!skips(String(repeating: "[", count: 1 << 20)))
    }

    @Test(arguments: [
        (#""\u00e9\n\t\\\"\/""#, "é\n\t\\\"/"), (#""\ud83d\ude00!""#, "😀!"), (#""é😀""#, "é😀"), (#""""#, ""),
    ])
    func readsText(json: String, text: String) throws {
        var scanner = JSONScanner(Array(json.utf8))
        #expect(try scanner.string() == text)
    }

    @Test(arguments: [#""\x""#, #""\u12""#, #""\u+123""#, #""\ud83d""#, #""\ud83d\u0041""#, #""\udc00""#])
    func refusesOtherEscapes(json: String) {
        var scanner = JSONScanner(Array(json.utf8))
        #expect(throws: JSONFault.self) { try scanner.string() }
    }

    @Test func readsNumbers() throws {
        var scanner = JSONScanner(Array("[18446744073709551615, 5.0, 1e3, -7, 0.125, 1e400, 1.5, 300]".utf8))
        try scanner.beginArray()
        try goOn(&scanner)
        #expect(try scanner.integer() == UInt64.max)
        for expected in [5, 1_000, -7] {
            try goOn(&scanner)
            #expect(try scanner.integer() == expected)
        }
        try goOn(&scanner)
        #expect(try scanner.number() == 0.125)
        try goOn(&scanner)
        #expect(throws: JSONFault.self) { try scanner.number() }
        try goOn(&scanner)
        #expect(throws: JSONFault.self) { () -> Int in try scanner.integer() }
        try goOn(&scanner)
        #expect(throws: JSONFault.self) { () -> UInt8 in try scanner.integer() }
        let hasMore = try scanner.nextElement()
        #expect(!hasMore)
        try scanner.end()
    }

    private func goOn(_ scanner: inout JSONScanner) throws {
        let hasMore = try scanner.nextElement()
        try #require(hasMore)
    }

    /// A summary says the same as the whole report does.
    @Test func aSummaryIsWhatTheWholeReportSays() throws {
        let fixtures = [
            ReportFixture(),
            ReportFixture(number: 9, kind: "saturation", state: "abandoned", fingerprint: nil, repeats: 12),
            ReportFixture(metadata: [:], function: "a\\\"b\\u00e9", file: "/é/😀.swift"),
        ]
        for fixture in fixtures {
            let report = try StallReport(jsonData: fixture.bytes)
            #expect(try ReportSummary(json: fixture.bytes, functions: true) == ReportSummary(report))
            #expect(try ReportSummary(json: report.jsonData(), functions: true) == ReportSummary(report))
            #expect(try ReportSummary(json: fixture.bytes, functions: false).functions.isEmpty)
        }
    }
}
