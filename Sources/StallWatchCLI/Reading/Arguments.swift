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
            "'\(text)' is no duration: give a number and its unit (us, ms, s, m, h, d), such as 500ms.")
    }
}

extension DurationArgument: CustomStringConvertible {
    /// As it may be given, in the largest unit that it is a whole number of.
    var description: String {
        let unit = Self.units.filter { milliseconds >= $0.1 && milliseconds.truncatingRemainder(dividingBy: $0.1) == 0 }
            .max { $0.1 < $1.1 }
        return unit.map { "\((milliseconds / $0.1).fixed(0))\($0.0)" } ?? "\(milliseconds)ms"
    }
}

/// A point in time on the command line.
struct TimeArgument: Sendable, Equatable {
    let time: Timestamp

    /// Reads a day, a time of a day, both to any precision, or how long ago.
    init(parsing text: String) throws {
        try self.init(parsing: text, now: Timestamp(microsecondsSince1970: Int64(Glibc.time(nil)) * 1_000_000))
    }

    init(parsing text: String, now: Timestamp) throws {
        if let ago = try? DurationArgument(parsing: text), ago.milliseconds < 1e14 {
            time = Timestamp(microsecondsSince1970: now.microsecondsSince1970 - Int64(ago.milliseconds * 1_000))
            return
        }
        let plain = (text.hasSuffix("Z") ? text.dropLast() : text[...]).map { $0 == " " ? "T" : String($0) }.joined()
        let form = "0000-01-01T00:00:00.000000"
        guard plain.count >= "2026-11-21".count, plain.count <= form.count,
            let time = Timestamp(plain + form.dropFirst(plain.count) + "Z")
        else {
            throw ValidationError(
                "'\(text)' is no time: give one such as 2026-11-21, 2026-11-21T08:00 or 2026-11-21T08:00:00.5Z (UTC), or how "
                    + "long ago, such as 2h."
            )
        }
        self.time = time
    }
}

extension ReportFilter.MetadataCondition {
    /// Reads `key=value`.
    init(parsing text: String) throws {
        guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
            throw ValidationError("'\(text)' is no pair: give a key and its value, such as version=1.4.2.")
        }
        self.init(key: String(text[..<sign]), value: String(text[text.index(after: sign)...]))
    }
}
