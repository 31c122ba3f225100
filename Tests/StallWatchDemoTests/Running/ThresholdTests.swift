import ArgumentParser
import StallWatch
import Testing

@testable import stallwatch_demo

@Suite struct ThresholdTests {
    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("1s", .seconds(1)), ("0.5s", .milliseconds(500)),
        ("7500us", .microseconds(7500)), ("5ms", .milliseconds(5)), ("86400s", .seconds(86_400)),
        ("12.5ms", .microseconds(12_500)),
    ])
    func aNumberAndAUnitAreRead(text: String, duration: Duration) throws {
        let threshold = try Threshold(parsing: text)
        #expect(threshold.duration == duration)
        #expect(threshold.description == text)
    }

    @Test(arguments: [
        "", "250", "ms", "s", "abc", "1 s", " 1s", "1.2.3s", "1m", "1h", "0x10ms", "1e3ms", "infs", "nans", "1,5s",
        "٣s", "--1s",
        "1s1s", "１s",
    ])
    func otherTextIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try Threshold(parsing: text) }
        #expect(error?.message.contains("not a duration") == true)
    }

    @Test(arguments: [
        "0ms", "0s", "-5ms", "-0.5s", "1500us", "4.999ms", "86401s", "99999999999999999999s",
        String(repeating: "9", count: 400) + "s",
    ])
    func aThresholdOutOfRangeIsRefused(text: String) {
        let error = #expect(throws: ValidationError.self) { try Threshold(parsing: text) }
        #expect(error?.message.contains("5ms to 86400s") == true)
    }
}
