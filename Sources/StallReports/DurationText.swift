/// The text of a duration in an option or an environment variable: a number with its unit, such as `250ms`.
package struct DurationText: Sendable, Equatable {
    /// Why a text is not a duration.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    /// The units and their lengths in milliseconds; of two that a text may end with, the longer one comes first.
    package static let units = [
        ("us", 0.001), ("ms", 1), ("min", 60_000), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]
    /// 100 years, so that it can be counted in nanoseconds too.
    private static let longest = 36_500 * 86_400_000.0

    package let milliseconds: Double

    package init(_ text: String) throws(Fault) {
        for (unit, length) in Self.units where text.hasSuffix(unit) {
            guard let number = Double(text.dropLast(unit.count)), number.isFinite, number >= 0 else { break }
            guard number * length <= Self.longest else { throw Fault(description: "'\(text)' is more than 100 years.") }
            milliseconds = number * length
            return
        }
        throw Fault(
            description: "'\(text)' is not a duration. Give a number with its unit (us, ms, s, m, h, d), such as 500ms."
        )
    }

    package var duration: Duration { .nanoseconds(Int64(milliseconds * 1_000_000)) }
}
