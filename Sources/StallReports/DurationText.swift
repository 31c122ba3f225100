/// A duration as people write it: a number and its unit, such as `500ms`.
package enum DurationText {
    /// Why a text is no duration: a sentence that says what to write.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    /// 100 years, so that it can be counted in nanoseconds.
    private static let longest = 36_500 * 86_400e9
    /// The units with their nanoseconds; the longer name first where one ends in another.
    private static let units = [
        ("us", 1e3), ("ms", 1e6), ("min", 60e9), ("s", 1e9), ("m", 60e9), ("h", 3_600e9), ("d", 86_400e9),
    ]

    /// Reads a duration of 0 to 100 years.
    package static func duration(_ text: String) throws(Fault) -> Duration {
        let unit = units.first { text.hasSuffix($0.0) }
        let number = text.dropLast(unit?.0.count ?? 0)
        // Double also reads 0x10, 1e3, inf and nan.
        let isDecimal = number.utf8.allSatisfy { 0x30...0x39 ~= $0 || $0 == UInt8(ascii: ".") }
        guard let unit, isDecimal, let value = Double(number) else {
            throw Fault(
                description:
                    "'\(text)' is not a duration. Give a number with its unit (us, ms, s, m, h, d), such as 500ms.")
        }
        guard value * unit.1 <= longest else { throw Fault(description: "'\(text)' is more than 100 years.") }
        return .nanoseconds(Int64((value * unit.1).rounded()))
    }

    /// The text of a duration, in the largest unit from milliseconds on that gives a whole number.
    package static func text(_ duration: Duration) -> String {
        let nanoseconds = duration / .nanoseconds(1)
        guard nanoseconds >= 1e6 else { return nanoseconds == 0 ? "0ms" : "\(duration / .microseconds(1))us" }
        let unit = units.dropFirst().filter { nanoseconds >= $0.1 && nanoseconds.remainder(dividingBy: $0.1) == 0 }
            .max { $0.1 < $1.1 }
        return unit.map { "\(Int64(nanoseconds / $0.1))\($0.0)" } ?? "\(duration / .milliseconds(1))ms"
    }
}
