import Foundation
import Testing
import TestSupport

@testable import StallReports

@Suite struct TimestampTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1, "1970-01-01T00:00:00.000001Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (1_795_248_000_123_456, "2026-11-21T08:00:00.123456Z"),
            (1_709_251_199_999_999, "2024-02-29T23:59:59.999999Z"),
            (253_402_300_799_999_999, "9999-12-31T23:59:59.999999Z"),
            (-62_167_219_200_000_000, "0000-01-01T00:00:00.000000Z"),
        ] as [(Int64, String)])
    func aTimeConvertsToItsTextAndBack(microseconds: Int64, text: String) {
        #expect(Timestamp(microsecondsSince1970: microseconds).description == text)
        #expect(Timestamp(text)?.microsecondsSince1970 == microseconds)
    }

    @Test func randomTimesSurviveARoundTrip() {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2_000 {
            let microseconds = Int64.random(in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &generator)
            let timestamp = Timestamp(microsecondsSince1970: microseconds)
            #expect(Timestamp(timestamp.description) == timestamp)
        }
    }

    @Test func textsSortByTime() {
        var generator = SeededGenerator(seed: 2)
        let times = (0..<200).map { _ in
            Timestamp(microsecondsSince1970: Int64.random(in: 0...4_000_000_000_000_000, using: &generator))
        }
        #expect(times.sorted().map(\.description) == times.map(\.description).sorted())
    }

    @Test(arguments: [
        "", "2026", "2026-11-21", "2026-11-21T08:00:00Z", "2026-11-21T08:00:00.123Z", "2026-11-21T08:00:00.1234567Z",
        "2026-11-21 08:00:00.123456Z", "2026-11-21T08:00:00.123456z", "2026-11-21T08:00:00.123456",
        "2026-11-21T08:00:00.123456+00:00", "+026-11-21T08:00:00.123456Z", "2026-11-21T08:00:00,123456Z",
        "2026-1 -21T08:00:00.123456Z", "２026-11-21T08:00:00.123456Z", " 2026-11-21T08:00:00.123456Z",
        // Dates and times that do not exist.
        "2026-00-21T08:00:00.000000Z", "2026-13-21T08:00:00.000000Z", "2026-11-00T08:00:00.000000Z",
        "2026-11-31T08:00:00.000000Z", "2026-02-29T08:00:00.000000Z", "2026-11-21T24:00:00.000000Z",
        "2026-11-21T08:60:00.000000Z", "2026-11-21T08:00:60.000000Z",
    ])
    func otherFormsAndNonexistentTimesAreRefused(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test func nanosecondsAreRoundedDownToMicroseconds() {
        #expect(Timestamp(wallClockNanoseconds: 1_999).microsecondsSince1970 == 1)
        #expect(Timestamp(wallClockNanoseconds: .max).microsecondsSince1970 == 18_446_744_073_709_551)
    }

    @Test func theDateIsTheSameMoment() {
        #expect(Timestamp(microsecondsSince1970: 1_500_000).date == Date(timeIntervalSince1970: 1.5))
    }

    @Test(arguments: [Int64.min, .max])
    func theExtremeTimesHaveAText(microseconds: Int64) {
        #expect(Timestamp(microsecondsSince1970: microseconds).description.hasSuffix("Z"))
    }

    @Test func theDecodingErrorQuotesTheInvalidText() throws {
        let error = #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([Timestamp].self, from: Data(#"["yesterday"]"#.utf8))
        }
        #expect(String(describing: error).contains("yesterday"))
    }
}

@Suite struct HexadecimalTests {
    @Test(
        arguments: [
            (0, 0, "0"), (255, 0, "ff"), (255, 4, "00ff"), (0x12345, 2, "12345"), (0xa, 20, "0000000000000000000a"),
            (.max, 0, "ffffffffffffffff"),
        ] as [(UInt64, Int, String)])
    func aNumberHasLeadingZerosUpToTheWidth(value: UInt64, width: Int, text: String) {
        #expect(hexadecimal(value, width: width) == text)
    }

    @Test func bytesHaveTwoDigitsEach() {
        #expect(hexadecimal([UInt8]()) == "")
        #expect(hexadecimal([0x00, 0x0a, 0x9f, 0xff] as [UInt8]) == "000a9fff")
    }
}

@Suite struct ReportIdentifierTests {
    private func make(at microseconds: Int64, seed: UInt64 = 0) -> String {
        var generator = SeededGenerator(seed: seed)
        return ReportIdentifier.make(
            at: Timestamp(microsecondsSince1970: microseconds), random: (generator.next(), generator.next())
        )
    }

    /// RFC 9562: 48 bits of milliseconds, the version 7, 12 random bits, the variant 10, 62 random bits.
    @Test func theFieldsHaveTheirBitPositions() throws {
        let ids = (0..<200).map { make(at: 1_795_248_000_123_456, seed: $0) }
        #expect(Set(ids).count == 200)
        for id in ids {
            #expect(id == id.lowercased())
            let bytes = try #require(UUID(uuidString: id)).uuid
            let milliseconds = [bytes.0, bytes.1, bytes.2, bytes.3, bytes.4, bytes.5].reduce(0) { $0 << 8 | Int($1) }
            #expect(milliseconds == 1_795_248_000_123)
            #expect(bytes.6 >> 4 == 7)
            #expect(bytes.8 >> 6 == 0b10)
        }
    }

    @Test func idsSortByTime() {
        let ids = (0..<100).map { make(at: 1_795_248_000_000_000 + Int64($0) * 1_000, seed: UInt64(1_000 - $0)) }
        #expect(ids == ids.sorted())
    }

    @Test(arguments: [Int64.min, -1, 0, .max])
    func anyTimeGivesAValidUUID(microseconds: Int64) {
        #expect(UUID(uuidString: make(at: microseconds)) != nil)
    }
}

struct StringSearchTests {
    @Test("finds a part anywhere", arguments: ["__derived_", "Kind.__derived_enum", "a_____derived_"])
    func found(text: String) {
        #expect(text.containsBytes(of: "__derived_"))
    }

    @Test("does not find what is missing or cut", arguments: ["", "derived", "__derived", "_derived_"])
    func missing(text: String) {
        #expect(!text.containsBytes(of: "__derived_"))
    }
}
