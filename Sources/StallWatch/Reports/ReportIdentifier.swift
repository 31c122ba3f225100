/// Makes UUIDs of version 7 (RFC 9562): a millisecond time in front, so that they sort by it, and 74 random bits.
enum ReportIdentifier {
    static func make(
        at time: Timestamp, using generator: inout some RandomNumberGenerator
    ) -> String {
        let milliseconds = UInt64(clamping: time.microsecondsSince1970 / 1_000) & 0xffff_ffff_ffff
        let high = milliseconds << 16 | 0x7000 | UInt64.random(in: 0...0xfff, using: &generator)
        let low = 0x8000_0000_0000_0000 | UInt64.random(in: 0...(UInt64.max >> 2), using: &generator)
        let digits = hexadecimal(high, width: 16) + hexadecimal(low, width: 16)
        var text = ""
        for (index, digit) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(digit)
        }
        return text
    }
}

/// Lower-case hexadecimal digits, with leading zeros up to `width`.
func hexadecimal(_ value: some BinaryInteger, width: Int = 0) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: max(width - digits.count, 0)) + digits
}
