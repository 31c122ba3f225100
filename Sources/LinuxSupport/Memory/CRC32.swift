/// The CRC-32 checksum of IEEE 802.3, reflected: the one of gzip (RFC 1952) and of `.gnu_debuglink` sections.
package struct CRC32 {
    private var remainder = UInt32.max

    package init() {}

    /// The checksum of all bytes so far.
    package var value: UInt32 { ~remainder }

    /// Adds bytes.
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
