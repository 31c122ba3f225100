// Written by hand because the standard library's number formatting is generic code on pages of its own. A program that
// has just started a monitor would load them for this alone (measured: 64 kB).

/// Returns `value` in lowercase hexadecimal digits, with leading zeros up to `width` digits.
package func hexadecimal(_ value: UInt64, width: Int = 0) -> String {
    let significant = (UInt64.bitWidth - value.leadingZeroBitCount + 3) / 4
    let count = max(significant, width, 1)
    return String(decoding: (0..<count).map { digit(UInt8(value >> ((count - 1 - $0) * 4) & 0xf)) }, as: UTF8.self)
}

/// Returns each byte as two lowercase hexadecimal digits.
package func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    var digits: [UInt8] = []
    for byte in bytes {
        digits.append(digit(byte >> 4))
        digits.append(digit(byte & 0xf))
    }
    return String(decoding: digits, as: UTF8.self)
}

/// Returns the hexadecimal digit of a number from 0 to 15.
private func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + (value - 10)
}
