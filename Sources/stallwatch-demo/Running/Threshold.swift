import ArgumentParser
import LinuxSupport
import StallWatch

/// A threshold on the command line: a number and one of the units `us`, `ms` and `s`.
struct Threshold: Equatable, CustomStringConvertible {
    static let standard = Threshold(description: "250ms", duration: .milliseconds(250))

    /// The text on the command line.
    let description: String
    let duration: Duration

    private init(description: String, duration: Duration) {
        self.description = description
        self.duration = duration
    }

    /// Reads `text`.
    ///
    /// - Throws: `ValidationError`. Its message continues the parser's, which names the value.
    init(parsing text: String) throws(ValidationError) {
        guard let nanoseconds = Self.nanoseconds(text) else {
            throw ValidationError(
                "it is not a duration. Write a number and a unit without a space, such as 250ms, 0.5s or 7500us."
            )
        }
        let shortest = StallMonitor.Configuration.minimumThreshold
        let longest = StallMonitor.Configuration.maximumThreshold
        guard nanoseconds >= shortest / .nanoseconds(1), nanoseconds <= longest / .nanoseconds(1) else {
            throw ValidationError(
                "it is out of range. Choose a threshold from \(Int(shortest.milliseconds))ms "
                    + "to \(longest.components.seconds)s (24 hours)."
            )
        }
        // In range, so it is far from what an integer can hold.
        self.init(description: text, duration: .nanoseconds(Int64(nanoseconds.rounded())))
    }

    /// The longer units first where one ends in another.
    private static let units = [("us", 1e3), ("ms", 1e6), ("s", 1e9)]

    private static func nanoseconds(_ text: String) -> Double? {
        guard let (unit, factor) = units.first(where: { text.hasSuffix($0.0) }) else { return nil }
        let number = text.dropLast(unit.count)
        // Double also reads 0x10, 1e3, inf and nan, which are no durations here.
        let isDecimal = number.allSatisfy { $0.isASCII && ($0.isNumber || $0 == "." || $0 == "-") }
        guard isDecimal, let value = Double(number) else { return nil }
        return value * factor
    }
}
