/// Looking at bytes eight at a time.
///
/// Nearly all of a report is names in strings, of which nothing but the end matters.
extension [UInt8] {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highBits: UInt64 = 0x8080_8080_8080_8080

    /// Whether all are ASCII.
    var isASCII: Bool {
        // Loads stay inside the buffer: each needs eight bytes from its place on, and the rest is looked at one by one.
        withUnsafeBytes { buffer in
            var place = 0
            var seen: UInt64 = 0
            while place + 8 <= buffer.count {
                seen |= buffer.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                place += 8
            }
            while place < buffer.count {
                seen |= UInt64(buffer[place])
                place += 1
            }
            return seen & Self.highBits == 0
        }
    }

    /// The place from `start` on of the first quote, backslash or control character; the end if there is none.
    func endOfPlainText(from start: Int) -> Int {
        // As above.
        withUnsafeBytes { buffer in
            var place = start
            while place + 8 <= buffer.count {
                let word = buffer.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                if Self.isSpecial(word) { break }
                place += 8
            }
            while place < buffer.count {
                let byte = buffer[place]
                if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { break }
                place += 1
            }
            return place
        }
    }

    /// Whether one of the eight bytes is a quote, a backslash or a control character.
    ///
    /// Subtracting borrows into the high bit of a byte that is too small, and only there if no byte below it did; a byte
    /// that has its high bit itself does not count ("Bit Twiddling Hacks", "Determine if a word has a byte less than n").
    private static func isSpecial(_ word: UInt64) -> Bool {
        func hasByte(of word: UInt64, below limit: UInt64) -> UInt64 { (word &- ones &* limit) & ~word & highBits }
        let control = hasByte(of: word, below: 0x20)
        let quote = hasByte(of: word ^ (ones &* 0x22), below: 1)
        let backslash = hasByte(of: word ^ (ones &* 0x5c), below: 1)
        return control | quote | backslash != 0
    }
}
