internal import CLinux

/// Returns whether `bytes` more can be allocated now, and ``leastRoomBytes`` beside them.
///
/// A Swift array that does not fit ends the program. An allocation of another thread may still come between.
package func hasMemory(for bytes: Int) -> Bool { clinux_has_room(bytes + leastRoomBytes) }

/// The memory that is left to the app and to small allocations.
package let leastRoomBytes = 32 << 20

/// A way to read memory of this process that may not be mapped.
package protocol MemoryReading {
    /// Returns the `count` bytes at `address`; `nil` if one of them is not mapped.
    func bytes(at address: UInt64, count: Int) -> [UInt8]?
}

extension MemoryReading {
    /// Returns the 64-bit word at `address`; `nil` if it is not mapped.
    package func word(at address: UInt64) -> UInt64? {
        // x86-64 and AArch64 are little-endian.
        bytes(at: address, count: 8).map { $0.reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    }

    /// Returns the 32-bit integer at `address`; `nil` if it is not mapped.
    package func integer(at address: UInt64) -> Int32? {
        bytes(at: address, count: 4).map { Int32(bitPattern: $0.reversed().reduce(0) { $0 << 8 | UInt32($1) }) }
    }

    /// Returns `count` 32-bit integers that start at `address`; `nil` if one of them is not mapped.
    package func integers(at address: UInt64, count: Int) -> [Int32]? {
        bytes(at: address, count: count * 4).map { bytes in
            stride(from: 0, to: bytes.count - 3, by: 4).map { at in
                Int32(bitPattern: (0..<4).reversed().reduce(0) { $0 << 8 | UInt32(bytes[at + $1]) })
            }
        }
    }

    /// Returns the C string at `address`, up to 255 bytes or the end of mapped memory; `nil` if it is empty or not
    /// mapped.
    package func string(at address: UInt64) -> String? {
        var text: [UInt8] = []
        // Pieces that do not cross a page, so that a string at the end of a mapping can be read.
        while text.count < 255 {
            let at = address &+ UInt64(text.count)
            let piece = Int(min(64, 4096 - at % 4096))
            guard let bytes = bytes(at: at, count: piece) else { break }
            if let end = bytes.firstIndex(of: 0) {
                text += bytes[..<end]
                return text.isEmpty ? nil : String(decoding: text, as: UTF8.self)
            }
            text += bytes
        }
        return text.isEmpty ? nil : String(decoding: text.prefix(255), as: UTF8.self)
    }
}
