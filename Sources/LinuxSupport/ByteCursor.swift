/// Reads numbers and words from the text of a /proc file, without creating strings for the parts that it skips.
package struct ByteCursor {
    private let bytes: [UInt8]
    private let end: Int
    private var position = 0

    /// Creates a cursor over the first `count` bytes, or over all if there are fewer.
    package init(_ bytes: [UInt8], count: Int) {
        self.bytes = bytes
        end = min(count, bytes.count)
    }

    package init(_ text: String) { self.init(Array(text.utf8), count: .max) }

    /// The next byte that is not white space, without consuming it; `nil` at the end.
    package var next: UInt8? {
        mutating get {
            while position < end, Self.isSpace(bytes[position]) { position += 1 }
            return position < end ? bytes[position] : nil
        }
    }

    /// Consumes the next word, which ends before white space; `nil` at the end.
    package mutating func word() -> String? {
        guard next != nil else { return nil }
        let start = position
        while position < end, !Self.isSpace(bytes[position]) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    package mutating func skipWords(_ count: Int) {
        for _ in 0..<count {
            guard next != nil else { return }
            while position < end, !Self.isSpace(bytes[position]) { position += 1 }
        }
    }

    /// Consumes the next number: decimal, or lowercase hexadecimal after `0x`; `nil` if there is none within 64 bits.
    package mutating func number() -> UInt64? {
        guard let first = next else { return nil }
        let isHexadecimal =
            first == UInt8(ascii: "0") && position + 1 < end && bytes[position + 1] == UInt8(ascii: "x")
        let (radix, digits): (UInt64, Int) = isHexadecimal ? (16, position + 2) : (10, position)
        var at = digits
        var value: UInt64 = 0
        while at < end, let digit = Self.digit(bytes[at]), digit < radix {
            let (product, overflows) = value.multipliedReportingOverflow(by: radix)
            let (sum, carries) = product.addingReportingOverflow(digit)
            guard !overflows, !carries else { return nil }
            value = sum
            at += 1
        }
        guard at > digits else { return nil }
        position = at
        return value
    }

    /// Moves past the last occurrence of `byte` in the text; returns `false` and does not move if there is none.
    package mutating func skip(pastLast byte: UInt8) -> Bool {
        guard let last = bytes[..<end].lastIndex(of: byte) else { return false }
        position = last + 1
        return true
    }

    /// Moves past the next `prefix` of a line, from here on; returns `false` and does not move if there is none.
    package mutating func skip(pastLinePrefix prefix: StaticString) -> Bool {
        let wanted = UnsafeBufferPointer(start: prefix.utf8Start, count: prefix.utf8CodeUnitCount)
        var start = position
        while start < end {
            if end - start >= wanted.count, bytes[start..<(start + wanted.count)].elementsEqual(wanted) {
                position = start + wanted.count
                return true
            }
            guard let lineEnd = bytes[start..<end].firstIndex(of: UInt8(ascii: "\n")) else { return false }
            start = lineEnd + 1
        }
        return false
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\t")
    }

    private static func digit(_ byte: UInt8) -> UInt64? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte - UInt8(ascii: "0"))
        case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte - UInt8(ascii: "a") + 10)
        default: nil
        }
    }
}

/// The CRC-32 checksum of IEEE 802.3, reflected: the one of gzip (RFC 1952) and of `.gnu_debuglink` sections.
package struct CRC32 {
    private var remainder = UInt32.max

    package init() {}

    package var value: UInt32 { ~remainder }

    package mutating func add(_ bytes: [UInt8]) {
        for byte in bytes {
            remainder = Self.table[Int(UInt8(truncatingIfNeeded: remainder) ^ byte)] ^ (remainder >> 8)
        }
    }

    /// The effect of each byte on the remainder.
    private static let table: [UInt32] = (0..<256).map { index in
        (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ (value >> 1) : value >> 1 }
    }
}

/// Returns a number's bytes, the least one first.
package func littleEndian(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
}

extension StringProtocol {
    /// Returns the longest beginning of the text that has at most `count` bytes of UTF-8, and no part of a character.
    package func prefix(bytes count: Int) -> String {
        guard utf8.count > count else { return String(self) }
        var left = count
        let whole = prefix { character in
            left -= character.utf8.count
            return left >= 0
        }
        return String(whole)
    }
}
