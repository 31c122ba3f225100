import StallReports
import ArgumentParser
import Glibc

/// A duration on the command line.
struct DurationArgument: Sendable, Equatable {
    let milliseconds: Double

    private static let units = [
        ("us", 0.001), ("ms", 1), ("min", 60_000), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    init(milliseconds: Double) { self.milliseconds = milliseconds }

    /// Reads a number with its unit.
    init(parsing text: String) throws {
        for (unit, milliseconds) in Self.units where text.hasSuffix(unit) {
            guard let number = Double(text.dropLast(unit.count)), number.isFinite, number >= 0 else { break }
            self.init(milliseconds: number * milliseconds)
            return
        }
        throw ValidationError(
            "'\(text)' is not a duration. Give a number with its unit (us, ms, s, m, h, d), such as 500ms.")
    }
}

extension DurationArgument: CustomStringConvertible {
    /// The text form, in the largest unit that gives a whole number.
    var description: String {
        let unit = Self.units.filter { milliseconds >= $0.1 && milliseconds.truncatingRemainder(dividingBy: $0.1) == 0 }
            .max { $0.1 < $1.1 }
        return unit.map { "\((milliseconds / $0.1).fixed(0))\($0.0)" } ?? "\(milliseconds)ms"
    }
}
