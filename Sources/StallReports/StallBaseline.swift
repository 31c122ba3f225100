internal import Foundation

/// The stalls that tests excuse until a day, by fingerprint: a JSON file that people can edit and review.
package struct StallBaseline: Sendable, Equatable {
    /// The name of the file that `stallwatch baseline update` writes.
    package static let fileName = "stall-baseline.json"
    package static let currentVersion = 1

    package struct Entry: Codable, Sendable, Equatable {
        package var fingerprint: String
        /// The last day on which it excuses them.
        package var expires: CalendarDay
        /// The loop that stalled, for readers.
        package var loop: String?
        /// The function to inspect first, for readers.
        package var culprit: String?
        /// The cause in one sentence, for readers.
        package var cause: String?
    }

    /// The entries, each with a fingerprint of its own.
    package private(set) var entries: [Entry] = []

    package init() {}

    /// Adds an entry, unless there is one with its fingerprint.
    package mutating func add(_ entry: Entry) {
        if !entries.contains(where: { $0.fingerprint == entry.fingerprint }) { entries.append(entry) }
    }

    package func excuses(_ fingerprint: String?, on day: CalendarDay) -> Bool {
        entries.contains { $0.fingerprint == fingerprint && day <= $0.expires }
    }

    /// Returns the entry for the fingerprint if it has expired before a day.
    package func expired(_ fingerprint: String?, on day: CalendarDay) -> Entry? {
        entries.first { $0.fingerprint == fingerprint && $0.expires < day }
    }

    private struct Document: Codable {
        var version: Int
        var stalls: [Entry]
    }

    /// Decodes a baseline file; throws the place of the first fault.
    package init(jsonData: [UInt8]) throws(StallWatchError) {
        let document: Document
        func fault(_ message: String) -> StallWatchError { StallWatchError(.invalidConfiguration, message) }
        do {
            document = try JSONDecoder().decode(Document.self, from: Data(jsonData))
        } catch {
            throw fault((error as? DecodingError)?.fault(in: jsonData) ?? "\(error)")
        }
        guard document.version == Self.currentVersion else {
            throw fault("version is \(document.version), but has to be \(Self.currentVersion)")
        }
        var seen: Set<String> = []
        for (index, entry) in document.stalls.enumerated() {
            guard entry.fingerprint.utf8.count == 16, entry.fingerprint.isHexadecimal else {
                throw fault(
                    "stalls[\(index)].fingerprint is \"\(entry.fingerprint)\", but has to be 16 hexadecimal digits")
            }
            guard seen.insert(entry.fingerprint).inserted else {
                throw fault("stalls[\(index)].fingerprint is that of an earlier entry: remove one of them")
            }
        }
        entries = document.stalls
    }

    /// The file's contents: UTF-8, indented, with sorted keys and a line feed at the end.
    package func jsonData() -> [UInt8] {
        encodeJSON(Document(version: Self.currentVersion, stalls: entries), isIndented: true)
    }
}

extension StallBaseline.Entry {
    /// The entry that excuses the stalls of a report; `nil` if it has no fingerprint.
    package init?(_ report: StallReport, until expires: CalendarDay) {
        guard let fingerprint = report.fingerprint else { return nil }
        self.init(
            fingerprint: fingerprint, expires: expires, loop: report.loop.label, culprit: report.culprit?.function,
            cause: report.cause?.summary)
    }
}

/// A day of the calendar in UTC, such as 2027-03-31.
package struct CalendarDay: Sendable, Hashable, Comparable {
    private let start: Timestamp

    private static let length: Int64 = 86_400_000_000

    package init(_ time: Timestamp) {
        let days = (Double(time.microsecondsSince1970) / Double(Self.length)).rounded(.down)
        start = Timestamp(microsecondsSince1970: Int64(days) * Self.length)
    }

    package func adding(days: Int) -> CalendarDay {
        CalendarDay(Timestamp(microsecondsSince1970: start.microsecondsSince1970 + Int64(days) * Self.length))
    }

    package static func < (left: CalendarDay, right: CalendarDay) -> Bool { left.start < right.start }
}

extension CalendarDay: CustomStringConvertible {
    package var description: String { String(start.description.prefix(10)) }

    /// Parses exactly the form of ``description``; `nil` for any other form, and for a day that does not exist.
    package init?(_ description: String) {
        guard let start = Timestamp(description + "T00:00:00.000000Z") else { return nil }
        self.start = start
    }
}

extension CalendarDay: Codable {
    package init(from decoder: any Decoder) throws {
        self = try decoder.decodeText(Self.init(_:), else: "is not a day like 2027-03-31")
    }

    package func encode(to encoder: any Encoder) throws {
        try description.encode(to: encoder)
    }
}
