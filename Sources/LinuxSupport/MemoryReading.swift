internal import CLinux

/// Returns whether `bytes` more, and ``leastRoomBytes``, can be allocated now, if no other thread does so meanwhile; a
/// Swift array that does not fit ends the program.
package func hasMemory(for bytes: Int) -> Bool { clinux_has_room(bytes + leastRoomBytes) }

/// The memory that is left to the app and to small allocations.
package let leastRoomBytes = 32 << 20

/// A way to read memory of this process that may not be mapped.
package protocol MemoryReading {
    /// Returns the `count` bytes at `address`; `nil` if one of them is not mapped.
    func bytes(at address: UInt64, count: Int) -> [UInt8]?
}

extension MemoryReading {
    package func word(at address: UInt64) -> UInt64? { (values(at: address, count: 1) as [UInt64]?)?.first }

    package func integer(at address: UInt64) -> Int32? { integers(at: address, count: 1)?.first }

    package func integers(at address: UInt64, count: Int) -> [Int32]? { values(at: address, count: count) }

    /// Returns `count` 64-bit words that start at `address`; `nil` if the address is odd or one of them is not mapped.
    package func words(at address: UInt64, count: Int) -> [UInt64]? {
        address == 0 || address % 8 != 0 ? nil : values(at: address, count: count)
    }

    private func values<Value: BitwiseCopyable>(at address: UInt64, count: Int) -> [Value]? {
        let size = MemoryLayout<Value>.size
        return bytes(at: address, count: count * size)?.withUnsafeBytes { bytes in
            // Inside: there are `count` values.
            (0..<count).map { bytes.loadUnaligned(fromByteOffset: $0 * size, as: Value.self) }
        }
    }

    /// Returns the C string at `address`, up to 255 bytes or the end of mapped memory; `nil` if empty or unmapped.
    package func string(at address: UInt64) -> String? {
        var text: [UInt8] = []
        // Pieces that do not cross a page, so that a string at the end of a mapping can be read.
        while text.count < 255 {
            let at = address &+ UInt64(text.count)
            let piece = Int(min(64, 4096 - at % 4096))
            guard let bytes = bytes(at: at, count: piece) else { break }
            if let end = bytes.firstIndex(of: 0) {
                text += bytes[..<end]
                return text.isEmpty ? nil : pathText(text)
            }
            text += bytes
        }
        return text.isEmpty ? nil : pathText(text.prefix(255))
    }
}
