/// Reads numbers and words out of a text file of /proc byte by byte, without making strings of what is not kept.
package struct ByteCursor {
    private let bytes: [UInt8]
    private let end: Int
    private var position = 0

    /// Reads the first `count` of the bytes, or all if there are no more.
    package init(_ bytes: [UInt8], count: Int) {
        self.bytes = bytes
        end = min(count, bytes.count)
    }

    package init(_ text: String) {
        let bytes = [UInt8](text.utf8)
        self.init(bytes, count: bytes.count)
    }

    /// The next byte that is no space, without taking it.
    package var next: UInt8? {
        mutating get {
            while position < end, Self.isSpace(bytes[position]) { position += 1 }
            return position < end ? bytes[position] : nil
        }
    }

    /// The next word: everything up to the next space.
    package mutating func word() -> String? {
        guard next != nil else { return nil }
        let start = position
        while position < end, !Self.isSpace(bytes[position]) { position += 1 }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Passes over `count` words.
    package mutating func skipWords(_ count: Int) {
        for _ in 0..<count {
            guard next != nil else { return }
            while position < end, !Self.isSpace(bytes[position]) { position += 1 }
        }
    }

    /// The next word as a number: decimal, or hexadecimal after `0x`.
    ///
    /// `nil`, and nothing taken, if it is none.
    package mutating func number() -> UInt64? {
        guard let first = next else { return nil }
        var at = position
        let radix: UInt64
        if first == UInt8(ascii: "0"), at + 1 < end, bytes[at + 1] == UInt8(ascii: "x") {
            radix = 16
            at += 2
        } else {
            radix = 10
        }
        let digits = at
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

    /// Goes behind the last `byte` of the text.
    ///
    /// False, and nothing moved, if there is none.
    package mutating func skip(pastLast byte: UInt8) -> Bool {
        guard let last = bytes[..<end].lastIndex(of: byte) else { return false }
        position = last + 1
        return true
    }

    /// Goes behind the next place where a line begins with `prefix`.
    ///
    /// False, and nothing moved, if there is none.
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
