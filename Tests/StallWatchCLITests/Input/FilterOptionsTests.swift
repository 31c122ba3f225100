import ArgumentParser
import StallReports
import Testing

@testable import StallWatchCLI

@Suite struct ArgumentsTests {
    @Test(arguments: [
        ("500ms", 500.0), ("2s", 2_000), ("1.5s", 1_500), ("250us", 0.25), ("3m", 180_000), ("3min", 180_000),
        ("2h", 7_200_000),
        ("1d", 86_400_000), ("0ms", 0),
    ])
    func durations(text: String, milliseconds: Double) throws {
        #expect(try DurationArgument(parsing: text).milliseconds == milliseconds)
    }

    @Test(arguments: ["", "5", "ms", "-5ms", "5 years", "infs", "nans", "s"]) func noDurations(text: String) {
        #expect(throws: ValidationError.self) { try DurationArgument(parsing: text) }
    }

    @Test(arguments: [("500ms", "500ms"), ("60s", "1min"), ("90s", "90s"), ("24h", "1d")])
    func durationsArePrintedInTheFormOfTheInput(text: String, printed: String) throws {
        #expect(try DurationArgument(parsing: text).description == printed)
    }

    @Test(arguments: [
        ("2026-11-21", "2026-11-21T00:00:00.000000Z"), ("2026-11-21T08:30", "2026-11-21T08:30:00.000000Z"),
        ("2026-11-21 08:30:15Z", "2026-11-21T08:30:15.000000Z"),
        ("2026-11-21T08:30:15.5", "2026-11-21T08:30:15.500000Z"),
        ("2h", "2026-11-21T10:00:00.000000Z"),
    ])
    func times(text: String, time: String) throws {
        let now = try #require(Timestamp("2026-11-21T12:00:00.000000Z"))
        #expect(try TimeArgument(parsing: text, now: now).time.description == time)
    }

    @Test(arguments: [
        "", "yesterday", "2026", "2026-13-01", "2026-11-31", "2026-11-21T25:00", "2026-11-21T08:30:15.1234567Z",
    ])
    func noTimes(text: String) throws {
        let now = try #require(Timestamp("2026-11-21T12:00:00.000000Z"))
        #expect(throws: ValidationError.self) { try TimeArgument(parsing: text, now: now) }
    }
}
