/// Makes UUIDs of version 7 (RFC 9562): a millisecond time in front, so that they sort by it, and 74 random bits.
package enum ReportIdentifier {
    /// `random`: of its bits 12 and 62 are used.
    ///
    /// Not a generator, which the system's would be passed to as nothing at an undefined address: ThreadSanitizer, when it
    /// checks the app, looks there (Swift 6.3, SIGSEGV).
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
