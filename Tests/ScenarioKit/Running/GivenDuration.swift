package import ArgumentParser

/// A duration on the command line: a number and one of the units `us`, `ms`, `s`, `m` and `h`.
package struct GivenDuration: Equatable, CustomStringConvertible {
    /// The threshold without an option.
    package static let standardThreshold = GivenDuration(description: "250ms", duration: .milliseconds(250))

    /// The text on the command line.
    package let description: String
    package let duration: Duration

    private init(description: String, duration: Duration) {
        self.description = description
        self.duration = duration
    }

    /// Reads a threshold: 20 ms to 60 s.
    ///
    /// - Throws: `ValidationError`. Its message continues the parser's, which names the value.
    package static func threshold(_ text: String) throws(ValidationError) -> GivenDuration {
        try GivenDuration(
            text, from: .milliseconds(20), to: .seconds(60), "20ms to 60s: a scenario takes up to 16 of them")
    }

    /// Reads the length of a long run: a second to a week.
    ///
    /// - Throws: `ValidationError`. Its message continues the parser's, which names the value.
    package static func length(_ text: String) throws(ValidationError) -> GivenDuration {
        try GivenDuration(text, from: .seconds(1), to: .seconds(7 * 24 * 3600), "1s to 168h")
    }

    private init(_ text: String, from least: Duration, to most: Duration, _ range: String) throws(ValidationError) {
        guard let nanoseconds = Self.nanoseconds(text) else {
            throw ValidationError(
                "it is not a duration. Write a number and a unit without a space, such as 250ms, 0.5s, 30m or 8h.")
        }
        guard nanoseconds >= least / .nanoseconds(1), nanoseconds <= most / .nanoseconds(1) else {
            throw ValidationError("it is out of range. Choose a value from \(range).")
        }
        // In range, so it is far from what an integer can hold.
        self.init(description: text, duration: .nanoseconds(Int64(nanoseconds.rounded())))
    }

    /// The longer units first where one ends in another.
    private static let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)]

    private static func nanoseconds(_ text: String) -> Double? {
        guard let (unit, factor) = units.first(where: { text.hasSuffix($0.0) }) else { return nil }
        let number = text.dropLast(unit.count)
        // Double also reads 0x10, 1e3, inf and nan, which are no durations here.
        let isDecimal = number.allSatisfy { $0.isASCII && ($0.isNumber || $0 == "." || $0 == "-") }
        guard isDecimal, let value = Double(number) else { return nil }
        return value * factor
    }
}
