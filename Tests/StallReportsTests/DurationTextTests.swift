import StallReports
import Testing

@Suite struct DurationTextTests {
    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("0.5s", .milliseconds(500)), ("75000us", .microseconds(75_000)),
        ("8h", .seconds(28_800)),
    ])
    func aNumberAndAUnitAreRead(text: String, duration: Duration) throws {
        #expect(try DurationText.duration(text) == duration)
    }

    @Test(arguments: [
        ("250ms", Duration.milliseconds(250)), ("1.5ms", .microseconds(1_500)), ("2s", .seconds(2)), ("0ms", .zero),
        ("8h", .seconds(28_800)),
    ])
    func `a duration is written in the largest unit that gives a whole number`(text: String, duration: Duration) {
        #expect(DurationText.text(duration) == text)
    }

    @Test(arguments: ["", "250", "ms", "abc", "1 s", "1.2.3s", "0x10ms", "1e3ms", "infs", "1,5s", "٣s", "--1s", "-5ms"])
    func otherTextIsRefused(text: String) {
        let fault = #expect(throws: DurationText.Fault.self) { try DurationText.duration(text) }
        #expect(fault?.description.contains("not a duration") == true)
    }
}
