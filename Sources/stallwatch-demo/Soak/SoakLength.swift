import ArgumentParser

/// The duration of a soak on the command line: a whole number and one of the units `s`, `m` and `h`.
struct SoakLength: Equatable, CustomStringConvertible {
    /// The range in seconds: a second to a week.
    static let seconds = 1...7 * 24 * 3600

    /// The text on the command line.
    let description: String
    let duration: Duration

    /// Reads `text`.
    ///
    /// - Throws: `ValidationError`. Its message continues the parser's, which names the value.
    init(parsing text: String) throws(ValidationError) {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600]
        let digits = text.dropLast()
        // Int also reads +5 and -5.
        guard let unit = text.last.flatMap({ units[$0] }), digits.allSatisfy({ $0.isASCII && $0.isNumber }),
            let number = Int(digits)
        else {
            throw ValidationError(
                "it is not a length of time. Write a whole number and a unit, such as 90s, 30m or 8h.")
        }
        let (seconds, overflow) = number.multipliedReportingOverflow(by: unit)
        guard !overflow, Self.seconds.contains(seconds) else {
            throw ValidationError("it is out of range. Choose a length from 1s to 168h.")
        }
        description = text
        duration = .seconds(seconds)
    }
}
