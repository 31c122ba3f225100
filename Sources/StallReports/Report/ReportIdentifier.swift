/// Makes UUIDs of version 7 (RFC 9562): the time in milliseconds, by which they sort, and 74 random bits.
package enum ReportIdentifier {
    /// Returns a new UUID in lowercase.
    ///
    /// The random bits are values, not a generator: the system's generator is an empty type, which is passed at an
    /// undefined address. ThreadSanitizer accesses that address when it checks the app (Swift 6.3, SIGSEGV).
    ///
    /// - Parameters:
    ///   - time: The time in the UUID; a time before 1970 counts as 1970.
    ///   - random: The random bits: 12 of the first word and 62 of the second are used.
    /// - Returns: A UUID such as `01936c1e-7a52-7c3e-9d0e-5f3b8a1c2d4e`.
    package static func make(
        at time: Timestamp, random: (UInt64, UInt64) = (.random(in: .min ... .max), .random(in: .min ... .max))
    ) -> String {
        let milliseconds = UInt64(clamping: time.microsecondsSince1970 / 1_000) & 0xffff_ffff_ffff
        let high = milliseconds << 16 | 0x7000 | random.0 & 0xfff
        let low = 0x8000_0000_0000_0000 | random.1 >> 2
        let digits = hexadecimal(high, width: 16) + hexadecimal(low, width: 16)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        return text
    }
}
