public import Foundation

/// A point in time with microsecond precision.
///
/// Its text form is RFC 3339 in UTC: `2026-11-21T08:00:00.123456Z`.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// The number of microseconds since 1970-01-01T00:00:00Z; negative for earlier times.
    package let microsecondsSince1970: Int64

    package init(microsecondsSince1970: Int64) {
        self.microsecondsSince1970 = microsecondsSince1970
    }

    /// Creates a timestamp from the wall clock's nanoseconds since 1970, rounded down to microseconds.
    package init(wallClockNanoseconds: UInt64) {
        microsecondsSince1970 = Int64(clamping: wallClockNanoseconds / 1_000)
    }

    /// The same point in time as a `Date`.
    public var date: Date { Date(timeIntervalSince1970: Double(microsecondsSince1970) / 1_000_000) }

    /// Returns whether `left` is earlier than `right`.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.microsecondsSince1970 < right.microsecondsSince1970
    }
}

extension Timestamp: CustomStringConvertible {
    /// The time as RFC 3339 text in UTC, with six fractional digits.
    public var description: String {
        let (quotient, remainder) = microsecondsSince1970.quotientAndRemainder(dividingBy: 1_000_000)
        var seconds = time_t(remainder < 0 ? quotient - 1 : quotient)
        var calendar = tm()
        gmtime_r(&seconds, &calendar)
        return Self.digits(Int(calendar.tm_year) + 1900, 4) + "-" + Self.digits(Int(calendar.tm_mon) + 1, 2) + "-"
            + Self.digits(Int(calendar.tm_mday), 2) + "T" + Self.digits(Int(calendar.tm_hour), 2) + ":"
            + Self.digits(Int(calendar.tm_min), 2) + ":" + Self.digits(Int(calendar.tm_sec), 2) + "."
            + Self.digits(Int(remainder < 0 ? remainder + 1_000_000 : remainder), 6) + "Z"
    }

    /// Parses exactly the form of ``description``; `nil` for another form, and for a time that does not exist.
    package init?(_ description: String) {
        let text = Array(description.utf8)
        let form = Array("0000-00-00T00:00:00.000000Z".utf8)
        guard text.count == form.count,
            zip(text, form).allSatisfy({ $1 == UInt8(ascii: "0") ? (48...57).contains($0) : $0 == $1 })
        else { return nil }
        func number(_ range: Range<Int>) -> Int { text[range].reduce(0) { $0 * 10 + Int($1) - 48 } }
        var calendar = tm()
        calendar.tm_year = Int32(number(0..<4) - 1900)
        calendar.tm_mon = Int32(number(5..<7) - 1)
        calendar.tm_mday = Int32(number(8..<10))
        calendar.tm_hour = Int32(number(11..<13))
        calendar.tm_min = Int32(number(14..<16))
        calendar.tm_sec = Int32(number(17..<19))
        self.init(microsecondsSince1970: Int64(timegm(&calendar)) * 1_000_000 + Int64(number(20..<26)))
        // timegm(3) reads November 31 as December 1.
        guard self.description == description else { return nil }
    }

    private static func digits(_ value: Int, _ count: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(count - text.count, 0)) + text
    }
}

extension Timestamp: Codable {
    /// Decodes the text form.
    ///
    /// - Parameter decoder: The decoder.
    /// - Throws: `DecodingError` if the value is not a string of the form of ``description``.
    public init(from decoder: any Decoder) throws {
        self = try decoder.decodeText(Self.init(_:), else: "is not a time like 2026-11-21T08:00:00.123456Z")
    }

    /// Encodes the text form.
    ///
    /// - Parameter encoder: The encoder.
    /// - Throws: An error of the encoder.
    public func encode(to encoder: any Encoder) throws {
        try description.encode(to: encoder)
    }
}

extension Decoder {
    /// Decodes a value from its text form; `fault` follows a text that has another form.
    func decodeText<Value>(_ parse: (String) -> Value?, else fault: String) throws -> Value {
        let container = try singleValueContainer()
        let text = try container.decode(String.self)
        if let value = parse(text) { return value }
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "\"\(text)\" \(fault)")
    }
}

/// Makes UUIDs of version 7 (RFC 9562): the time in milliseconds, by which they sort, and 74 random bits.
package enum ReportIdentifier {
    /// Returns a new UUID in lowercase.
    ///
    /// The random bits are values, not a generator: the system's generator is an empty type, which is passed at an
    /// undefined address. ThreadSanitizer accesses that address when it checks the app (Swift 6.3, SIGSEGV).
    ///
    /// 12 bits of the first word and 62 of the second are used. A time before 1970 counts as 1970.
    package static func make(
        at time: Timestamp, random: (UInt64, UInt64) = (.random(in: .min ... .max), .random(in: .min ... .max))
    ) -> String {
        let milliseconds = UInt64(clamping: time.microsecondsSince1970 / 1_000) & 0xffff_ffff_ffff
        let low = 0x8000_0000_0000_0000 | random.1 >> 2
        let parts: [(value: UInt64, width: Int)] = [
            (milliseconds >> 16, 8), (milliseconds & 0xffff, 4), (0x7000 | random.0 & 0xfff, 4), (low >> 48, 4),
            (low & 0xffff_ffff_ffff, 12),
        ]
        return parts.map { hexadecimal($0.value, width: $0.width) }.joined(separator: "-")
    }

    /// Returns whether a text is a UUID in lowercase, of a version if one is given.
    package static func isIdentifier(_ text: String, version: Int? = nil) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.utf8.count) == [8, 4, 4, 4, 12], parts.allSatisfy(\.isHexadecimal) else { return false }
        guard let version else { return true }
        return parts[2].hasPrefix("\(version)") && "89ab".utf8.contains(parts[3].utf8.first ?? 0)
    }
}

// Written by hand because the standard library's number formatting is generic code on pages of its own. A program that
// has just started a monitor would load them for this alone (measured: 64 kB).

extension StallReport {
    /// An address in a process or in a file; in JSON hexadecimal text, such as "0x1f3a0".
    public struct Address: Codable, Sendable, Hashable, CustomStringConvertible {
        /// The address as a number.
        public let value: UInt64

        package init(_ value: UInt64) { self.value = value }

        /// The address in hexadecimal digits, after `0x`.
        public var description: String { "0x" + hexadecimal(value) }

        /// Decodes lowercase hexadecimal digits after `0x`.
        ///
        /// - Parameter decoder: The decoder.
        /// - Throws: `DecodingError` for any other value.
        public init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            let text = try container.decode(String.self)
            guard text.hasPrefix("0x"), text.dropFirst(2).isHexadecimal,
                let value = UInt64(text.dropFirst(2), radix: 16)
            else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "\"\(text)\" is not an address such as 0x1f3a0")
            }
            self.value = value
        }

        /// Encodes the hexadecimal text.
        ///
        /// - Parameter encoder: The encoder.
        /// - Throws: An error of the encoder.
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(description)
        }
    }
}

/// Returns `value` in lowercase hexadecimal digits, with leading zeros up to `width` digits.
package func hexadecimal(_ value: UInt64, width: Int = 0) -> String {
    let significant = (UInt64.bitWidth - value.leadingZeroBitCount + 3) / 4
    let count = max(significant, width, 1)
    return String(decoding: (0..<count).map { digit(UInt8(value >> ((count - 1 - $0) * 4) & 0xf)) }, as: UTF8.self)
}

/// Returns each byte as two lowercase hexadecimal digits.
package func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    String(decoding: bytes.flatMap { [digit($0 >> 4), digit($0 & 0xf)] }, as: UTF8.self)
}

private func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + (value - 10)
}

extension StringProtocol {
    /// Whether the text has lowercase hexadecimal digits, and nothing else.
    var isHexadecimal: Bool {
        !isEmpty && utf8.allSatisfy { 0x30...0x39 ~= $0 || 0x61...0x66 ~= $0 }
    }

    /// Whether the text contains `part`, byte by byte: `contains(_:)` compares characters in ten times the time.
    package func containsBytes(of part: StaticString) -> Bool {
        part.withUTF8Buffer { part in
            // Of a text that is not stored as UTF-8, a copy.
            utf8.withContiguousStorageIfAvailable { $0.containsBytes(of: part) }
                ?? Array(utf8).withUnsafeBufferPointer { $0.containsBytes(of: part) }
        }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Not generic: over the views of texts, the loops took a twentieth of a symbolication's time.
    fileprivate func containsBytes(of part: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let first = part.first else { return true }
        guard part.count <= count else { return false }
        return (0...count - part.count).contains { start in
            // Inside: `start` is at most the count without the part's.
            self[start] == first && self[start..<start + part.count].elementsEqual(part)
        }
    }
}
