import ArgumentParser
import Testing

@testable import stallwatch_demo

@Suite struct SoakLengthTests {
    @Test(arguments: [("1s", 1), ("600s", 600), ("30m", 1800), ("8h", 28800), ("168h", 604_800)])
    func aNumberAndAUnitAreRead(text: String, seconds: Int) throws {
        let length = try SoakLength(parsing: text)
        #expect(length.duration == .seconds(seconds))
        #expect(length.description == text)
    }

    @Test(arguments: [
        "", "m", "30", "30 m", "-5m", "+5m", "1.5h", "500ms", "1h30m", "0s", "169h", "٣m", "9999999999999999999h",
        "9999999999999999h",
    ])
    func otherTextIsRefused(text: String) {
        #expect(throws: ValidationError.self) { try SoakLength(parsing: text) }
    }
}
