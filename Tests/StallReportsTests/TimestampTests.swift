import Foundation
import TestSupport
import Testing

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
            let microseconds = Int64.random(
                in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &generator
            )
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
    ])
    func otherFormsAreRefused(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test(arguments: [
        "2026-00-21T08:00:00.000000Z", "2026-13-21T08:00:00.000000Z", "2026-11-00T08:00:00.000000Z",
        "2026-11-31T08:00:00.000000Z", "2026-02-29T08:00:00.000000Z", "2026-11-21T24:00:00.000000Z",
        "2026-11-21T08:60:00.000000Z", "2026-11-21T08:00:60.000000Z",
    ])
    func nonexistentDatesAndTimesAreRefused(text: String) {
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
