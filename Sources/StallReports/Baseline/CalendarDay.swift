/// A day of the calendar in UTC, such as 2027-03-31.
package struct CalendarDay: Sendable, Hashable, Comparable {
    /// The first moment of the day.
    private let start: Timestamp

    /// The number of microseconds of a day.
    private static let length: Int64 = 86_400_000_000

    /// The day of a point in time.
    package init(_ time: Timestamp) {
        let days = (Double(time.microsecondsSince1970) / Double(Self.length)).rounded(.down)
        start = Timestamp(microsecondsSince1970: Int64(days) * Self.length)
    }

    /// Returns the day that is a number of days later.
    package func adding(days: Int) -> CalendarDay {
        CalendarDay(Timestamp(microsecondsSince1970: start.microsecondsSince1970 + Int64(days) * Self.length))
    }

    package static func < (left: CalendarDay, right: CalendarDay) -> Bool { left.start < right.start }
}

extension CalendarDay: LosslessStringConvertible {
    /// The day as 2027-03-31.
    package var description: String { String(start.description.prefix(10)) }

    /// Parses exactly the form of ``description``; `nil` for any other form, and for a day that does not exist.
    package init?(_ description: String) {
        guard let start = Timestamp(description + "T00:00:00.000000Z") else { return nil }
        self.start = start
    }
}

extension CalendarDay: Codable {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let day = CalendarDay(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "\"\(text)\" is not a day like 2027-03-31")
        }
        self = day
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
